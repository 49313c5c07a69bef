#pragma once
// What ranks tell each other through messages in tests, and the plans and losses that every one of the
// host's must carry.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "hostless/base/deadline.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/plan/routes.hpp"
#include "hostless/transport/transport.hpp"
#include "plan_cases.hpp"

namespace hostless::gpu {

inline double value_of(Rank source, std::int64_t item, int epoch) {
  return 1e6 * epoch + 1e3 * source + static_cast<double>(item);
}

// What a rank says at a sum: its order to stop, and two totals.
inline std::vector<double> said_by(Rank rank, int epoch) { return {0, 1.0 * rank, 0.5 * epoch}; }
inline void expect_said(std::vector<double> const& all, int ranks, int epoch) {
  ASSERT_EQ(all.size(), 3 * static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    std::vector<double> const said(all.begin() + 3 * r, all.begin() + 3 * (r + 1));
    EXPECT_EQ(said, said_by(r, epoch)) << "rank " << r;
  }
}

// `Gpu` plays one rank's GPU: Gpu(transport, plan, limits), exchange(epoch), gather(epoch), renew() after a
// loss, expect_all(reads, epoch), calls().
template <class Gpu>
void expect_all_arrives_by_every_route() {
  for (int ranks : {1, 2, 3, 5}) {
    for (Route route : all_routes) {
      testing::Reads const reads = testing::random_reads(ranks, static_cast<unsigned>(ranks));
      auto const plans = make_plans(route, reads.patterns(), NodeMap::blocks(ranks, 2));
      run_with_threads_transport(ranks, [&](Transport& transport) {
        Gpu gpu(transport, plans[static_cast<std::size_t>(transport.group().rank())], {60, 60});
        for (int epoch = 1; epoch <= 20; ++epoch) gpu.expect_all(reads, epoch);
      });
    }
  }
}

// A rank that has started a round may do anything else until the other comes: start one with a third, say.
template <class Gpu>
void expect_nobody_waits_in_a_test() {
  testing::Reads const reads = testing::Reads({2, 2}).add(0, 1, {1}).add(1, 0, {0});
  auto const plans = make_plans(Route::direct, reads.patterns(), NodeMap::blocks(2, 2));
  run_with_threads_transport(2, [&](Transport& transport) {
    int const rank = transport.group().rank();
    Gpu gpu(transport, plans[static_cast<std::size_t>(rank)], {60, 60});
    for (int first = 0; first < 2; ++first) {
      if (rank == first) {
        gpu.calls().start(0);
        for (int k = 0; k < 3; ++k) EXPECT_EQ(gpu.calls().test(), MessageState::under_way);
      }
      transport.group().barrier();
      if (rank != first) gpu.calls().start(0);
      Deadline const deadline = Deadline::after(240);
      MessageState how_far = gpu.calls().test();
      for (; how_far == MessageState::under_way && !deadline.passed(); how_far = gpu.calls().test())
        Backoff::give_core_away();
      EXPECT_EQ(how_far, MessageState::complete);
      EXPECT_EQ(gpu.calls().test(), MessageState::complete) << "it stays so";
      transport.group().barrier();
    }
  });
}

template <class Gpu>
void expect_a_lost_rank_is_found_and_forgotten() {
  constexpr double deadline_s = 1;  // which no rank that is only slow takes
  constexpr int ranks = 3;
  testing::Reads const reads = testing::Reads({3, 3, 3}).add(0, 1, {1}).add(1, 0, {0, 2}).add(2, 2, {1});
  auto const plans = make_plans(Route::direct, reads.patterns(), NodeMap::blocks(ranks, ranks));
  run_with_threads_transport(ranks, [&](Transport& transport) {
    int const rank = transport.group().rank();
    Gpu gpu(transport, plans[static_cast<std::size_t>(rank)], {deadline_s, deadline_s});
    gpu.expect_all(reads, 1);
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
    for (int epoch = 4; epoch < 8; ++epoch) gpu.expect_all(reads, epoch);
  });
}

}  // namespace hostless::gpu
