// The host's side of `--gpu-transport host`, without a GPU: ghosts and parts of sums arrive as a GPU would
// get them, by every route; a lost rank is found, and the ranks go on afterwards.
#include "exchange/gpu/staged_messages.hpp"

#include <gtest/gtest.h>

#include "exchange/stream_rounds.hpp"
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
        round_(staged_round(copies_, plan)),
        sent_(round_.from.size()),
        ghosts(static_cast<std::size_t>(plan.ghosts)),
        messages_(transport, plan, round_, sizeof(double), limits) {
    messages_.bind(
        {reinterpret_cast<std::byte const*>(sent_.data()), reinterpret_cast<std::byte*>(ghosts.data())});
  }
  bool exchange(int epoch) {
    for (std::size_t k = 0; k < sent_.size(); ++k)
      sent_[k] = value_of(plan_.rank, round_.from[k].vector_offset, epoch);
    std::fill(ghosts.begin(), ghosts.end(), -1);
    return messages_.calls().carry(0);
  }
  bool gather(int epoch) {
    std::vector<double> const mine = said_by(plan_.rank, epoch);
    all.assign(3 * static_cast<std::size_t>(plan_.ranks), -1);
    return messages_.calls().gather(mine.data(), 3, all.data());
  }
  HostMessaging const& calls() const { return messages_.calls(); }
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

 private:
  ExchangePlan const& plan_;
  PeerCopies copies_;
  MessageRound round_;
  std::vector<double> sent_;

 public:
  std::vector<double> ghosts, all;

 private:
  StagedMessages messages_;
};

TEST(StagedMessages, GhostsAndPartsOfSumsArrive) { expect_all_arrives_by_every_route<Gpu>(); }

TEST(StagedMessages, NobodyWaitsInATest) { expect_nobody_waits_in_a_test<Gpu>(); }

TEST(StagedMessages, ALostRankIsFoundAndForgotten) { expect_a_lost_rank_is_found_and_forgotten<Gpu>(); }

}  // namespace
}  // namespace hostless::gpu
