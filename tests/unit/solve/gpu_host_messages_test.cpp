// The host's side of `--gpu-transport host`, without a GPU: ghosts and parts of sums arrive as a GPU would
// get them, by every route; a lost rank is found, and the ranks go on afterwards.
#include "solve/gpu_host_messages.hpp"

#include <gtest/gtest.h>

#include "message_cases.hpp"

namespace hostless::gpu {
namespace {

using testing::Reads;

// One rank's GPU: what it would copy to the host and get back.
class Gpu {
 public:
  Gpu(Transport& transport, ExchangePlan const& plan, WaitLimits limits)
      : plan_(plan),
        copies_(peer_copies(plan, transport.group())),
        messages_(transport, plan, copies_, limits) {}
  bool exchange(int epoch) {
    HostCalls const& calls = messages_.calls();
    std::vector<double> sent;
    for (std::int32_t row : calls.rows) sent.push_back(value_of(plan_.rank, row, epoch));
    ghosts.assign(static_cast<std::size_t>(calls.ghosts_below + calls.ghosts_above), -1);
    return calls.exchange(sent.data(), ghosts.data());
  }
  bool gather(int epoch) {
    std::vector<double> const mine = said_by(plan_.rank, epoch);
    all.assign(3 * static_cast<std::size_t>(plan_.ranks), -1);
    return messages_.calls().gather(mine.data(), 3, all.data());
  }
  void renew() { messages_.renew(); }
  void expect_all(Reads const& reads, int epoch) {
    ASSERT_TRUE(exchange(epoch));
    auto const expected = reads.ghosts(plan_.rank);
    ASSERT_EQ(ghosts.size(), expected.size());
    for (std::size_t g = 0; g < expected.size(); ++g)
      EXPECT_EQ(ghosts[g], value_of(expected[g].first, expected[g].second, epoch))
          << "ghost " << g << " of rank " << plan_.rank;
    ASSERT_TRUE(gather(epoch));
    expect_said(all, plan_.ranks, epoch);
  }
  std::vector<double> ghosts, all;

 private:
  ExchangePlan const& plan_;
  PeerCopies copies_;
  HostMessages messages_;
};

TEST(HostMessages, GhostsAndPartsOfSumsArrive) { expect_all_arrives_by_every_route<Gpu>(); }

TEST(HostMessages, ALostRankIsFoundAndForgotten) { expect_a_lost_rank_is_found_and_forgotten<Gpu>(); }

}  // namespace
}  // namespace hostless::gpu
