// The host's side of `--gpu-transport host`, without a GPU: ghosts and parts of sums arrive as a GPU would
// get them, by every route; a lost rank is found, and the ranks go on afterwards.
#include "solve/gpu_host_carriage.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "hostless/plan/routes.hpp"
#include "plan_cases.hpp"

namespace hostless::gpu {
namespace {

using testing::Reads;

double value_of(Rank source, std::int64_t item, int epoch) {
  return 1e6 * epoch + 1e3 * source + static_cast<double>(item);
}

// One rank's GPU: what it would copy to the host and get back.
class Gpu {
 public:
  Gpu(Transport& transport, HaloPlan const& plan, WaitLimits limits)
      : plan_(plan),
        copies_(peer_copies(plan, transport.group())),
        carrier_(transport, plan, copies_, limits) {}
  bool exchange(int epoch) {
    HostCarriage const& carriage = carrier_.carriage();
    std::vector<double> sent;
    for (std::int32_t row : carriage.rows) sent.push_back(value_of(plan_.rank, row, epoch));
    ghosts.assign(static_cast<std::size_t>(carriage.ghosts_below + carriage.ghosts_above), -1);
    return carriage.exchange(sent.data(), ghosts.data());
  }
  bool gather(int epoch) {
    std::vector<double> const mine = {0, 1.0 * plan_.rank, 0.5 * epoch};
    all.assign(3 * static_cast<std::size_t>(plan_.ranks), -1);
    return carrier_.carriage().gather(mine.data(), 3, all.data());
  }
  void renew() { carrier_.renew(); }
  std::vector<double> ghosts, all;

 private:
  HaloPlan const& plan_;
  PeerCopies copies_;
  HostCarrier carrier_;
};

void expect_all(Gpu& gpu, Reads const& reads, HaloPlan const& plan, int epoch) {
  ASSERT_TRUE(gpu.exchange(epoch));
  auto const expected = reads.ghosts(plan.rank);
  ASSERT_EQ(gpu.ghosts.size(), expected.size());
  for (std::size_t g = 0; g < expected.size(); ++g)
    EXPECT_EQ(gpu.ghosts[g], value_of(expected[g].first, expected[g].second, epoch))
        << "ghost " << g << " of rank " << plan.rank;
  ASSERT_TRUE(gpu.gather(epoch));
  for (int r = 0; r < plan.ranks; ++r) {
    double const* const said = gpu.all.data() + 3 * r;
    EXPECT_EQ(said[0], 0);
    EXPECT_EQ(said[1], r);
    EXPECT_EQ(said[2], 0.5 * epoch);
  }
}

TEST(HostCarriage, GhostsAndPartsOfSumsArrive) {
  for (int ranks : {1, 2, 3, 5}) {
    for (Route route : {Route::direct, Route::two_step, Route::three_step}) {
      Reads const reads = testing::random_reads(ranks, static_cast<unsigned>(ranks));
      PlanOptions options;
      options.block = 3;
      auto const plans = make_plans(route, reads.patterns(), NodeMap::blocks(ranks, 2), options);
      run_with_threads_transport(ranks, [&](Transport& transport) {
        HaloPlan const& plan = plans[static_cast<std::size_t>(transport.group().rank())];
        Gpu gpu(transport, plan, {60, 60});
        for (int epoch = 1; epoch <= 20; ++epoch) expect_all(gpu, reads, plan, epoch);
      });
    }
  }
}

TEST(HostCarriage, ALostRankIsFoundAndForgotten) {
  constexpr double deadline_s = 0.2;
  constexpr int ranks = 3;
  Reads const reads = Reads({3, 3, 3}).add(0, 1, {1}).add(1, 0, {0, 2}).add(2, 2, {1});
  auto const plans = make_plans(Route::direct, reads.patterns(), NodeMap::blocks(ranks, ranks));
  run_with_threads_transport(ranks, [&](Transport& transport) {
    int const rank = transport.group().rank();
    HaloPlan const& plan = plans[static_cast<std::size_t>(rank)];
    Gpu gpu(transport, plan, {deadline_s, deadline_s});
    expect_all(gpu, reads, plan, 1);
    transport.group().barrier();
    if (rank == 2) {  // silent
      std::this_thread::sleep_for(std::chrono::duration<double>(2 * deadline_s));
    } else {
      auto const begin = Clock::now();
      EXPECT_FALSE(gpu.exchange(2) && gpu.gather(2));
      double const seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      EXPECT_GT(seconds, 0.4 * deadline_s) << "nobody waited";
      EXPECT_FALSE(gpu.exchange(3)) << "a lost rank was forgotten by itself";
    }
    transport.group().barrier();
    gpu.renew();
    for (int epoch = 4; epoch < 8; ++epoch) expect_all(gpu, reads, plan, epoch);
  });
}

}  // namespace
}  // namespace hostless::gpu
