// Traces that a persistent kernel, or stamps between kernels, would have left: by hand.
#include "solve/gpu_solver/trace_times.hpp"

#include <gtest/gtest.h>

namespace hostless::gpu {
namespace {

/// Two barriers an iteration of 100 cycles; block b computes until `b` cycles after block 0, its clock is
/// `skew` cycles ahead of block 0's for each block before it.
struct Kernel {
  int blocks = 3, iterations = 20;
  std::int64_t skew = 0;
  Trace trace() const {
    Trace t;
    t.blocks = blocks;
    t.hertz = 1;
    for (int b = 0; b < blocks; ++b) {
      auto const clock = [&](std::int64_t time) {
        return static_cast<std::uint64_t>(1'000'000 + time + b * skew);
      };
      for (int k = 0; k < iterations; ++k) {
        std::int64_t const begun = 100 * k;
        auto const late = std::int64_t{b};
        t.entries.push_back({clock(begun), clock(begun + 20 + late), clock(begun + 21 + late),
                             clock(begun + 38), clock(begun + 40), Phase::sweep, k});
        t.entries.push_back({clock(begun + 40), clock(begun + 70 + late), clock(begun + 71 + late),
                             clock(begun + 96), clock(begun + 100), Phase::rows, k + 1});
      }
    }
    return t;
  }
};

// The first barrier: the first words leave at 21 and have come at 38, blocks compute until 23 and decide from
// 38 to 40. The second: 71, 96, 73, 96 to 100.
void expect_as_made(IterationTimes const& times) {
  EXPECT_EQ(times.clock, IterationTimes::Clock::kernel);
  EXPECT_NEAR(times.iteration_s, 100, 1e-9);
  EXPECT_NEAR(times.computing_s, 23 + 2 + 33 + 4, 1e-9);
  EXPECT_NEAR(times.communication_s, 17 + 25, 1e-9);
  EXPECT_NEAR(times.exposed_s, 15 + 23, 1e-9);
  EXPECT_NEAR(times.idle_s, 0, 1e-9);
  EXPECT_NEAR(overlapped(times.exposed_s, times.communication_s), 4.0 / 42.0, 1e-9);
}

TEST(TraceTimes, OfAKernelWhoseClocksAgree) { expect_as_made(times_of(clock_trace(Kernel{}.trace(), 2))); }

TEST(TraceTimes, ClocksOfMultiprocessorsNeedNotAgree) {
  for (std::int64_t const skew : {-100000, -37, 55, 123456})
    expect_as_made(times_of(clock_trace(Kernel{3, 20, skew}.trace(), 2)));
}

TEST(TraceTimes, TheFirstIterationsAreLeftOutAndSoIsTheLast) {
  EXPECT_EQ(times_of(clock_trace(Kernel{3, 20, 0}.trace(), 2)).iterations, 15);
  EXPECT_EQ(times_of(clock_trace(Kernel{3, 6, 0}.trace(), 2)).iterations, 5);
  EXPECT_EQ(times_of(clock_trace(Kernel{3, 1, 0}.trace(), 2)).clock, IterationTimes::Clock::none);
  EXPECT_EQ(times_of(clock_trace(Kernel{3, 0, 0}.trace(), 2)).clock, IterationTimes::Clock::none);
}

TEST(TraceTimes, BarriersNotReachedAndThoseOfALaunchBeforeAreNoneOfIt) {
  Kernel const kernel;
  Trace const whole = kernel.trace();
  Trace longer = whole;
  std::size_t const barriers = whole.entries.size() / 3;
  longer.entries.clear();
  for (std::size_t b = 0; b < 3; ++b) {
    auto const* const own = whole.entries.data() + b * barriers;
    longer.entries.insert(longer.entries.end(), own, own + barriers);
    if (b == 1) {
      longer.entries.resize(longer.entries.size() + 4);
    } else {
      for (int k = 0; k < 4; ++k)  // at an earlier time
        longer.entries.push_back({1000, 1001, 1002, 1003, 1004, Phase::rows, 7});
    }
  }
  expect_as_made(times_of(clock_trace(longer, 2)));
}

TEST(TraceTimes, BlocksOfOneRankWaitForNobodyElse) {
  auto const times = times_of(clock_trace(Kernel{}.trace(), 1));
  EXPECT_EQ(times.communication_s, 0);
  EXPECT_EQ(times.exposed_s, 0);
  EXPECT_NEAR(times.idle_s, 15 + 23, 1e-9);
}

TEST(TraceTimes, NothingRecordedIsNothing) {
  EXPECT_EQ(times_of(clock_trace(Trace{}, 2)).clock, IterationTimes::Clock::none);
  Trace empty;
  empty.blocks = 2;
  empty.hertz = 1;
  EXPECT_EQ(times_of(clock_trace(empty, 2)).clock, IterationTimes::Clock::none);
  empty.entries.resize(20);
  EXPECT_EQ(times_of(clock_trace(empty, 2)).clock, IterationTimes::Clock::none);
}

/// An iteration of 100 ticks: a phase of 10 ticks, the exchange from 12 to 50 beside the interior from 13 to
/// 33, the border from 55 to 65, a sum from 66 to 90, its decision from 92 to 95; a phase behind a closed
/// gate.
Trace stamped(int iterations, bool parted) {
  Trace t;
  for (int k = 0; k < iterations; ++k) {
    std::uint64_t const at = 5000 + 100 * static_cast<std::uint64_t>(k);
    auto const add = [&](std::uint64_t time, Mark mark, std::int64_t iteration, bool open = true) {
      t.stamps.push_back({at + time, mark, open ? 1u : 0u, iteration});
    };
    add(0, Mark::computes, k);
    add(10, Mark::computed, k);
    add(12, Mark::departs, k);
    if (parted) {
      add(13, Mark::computes, k);
      add(33, Mark::computed, k);
    }
    add(50, Mark::arrived, k);
    add(55, Mark::computes, k);
    add(65, Mark::computed, k);
    add(66, Mark::departs, k);
    add(90, Mark::arrived, k);
    add(92, Mark::computes, k);
    add(95, Mark::computed, k + 1);
    add(96, Mark::computes, k + 1, false);
    add(98, Mark::computed, k + 1);
  }
  // The host has queued more than there was to do.
  t.stamps.push_back({5000 + 100 * static_cast<std::uint64_t>(iterations), Mark::computes, 0, iterations});
  return t;
}

TEST(TraceTimes, OfStampsWithTheInteriorBesideTheExchange) {
  auto const times = times_of(clock_trace(stamped(30, true), 2));
  EXPECT_EQ(times.clock, IterationTimes::Clock::stamps);
  EXPECT_EQ(times.iterations, 25);
  EXPECT_NEAR(1e9 * times.iteration_s, 100, 1e-6);
  EXPECT_NEAR(1e9 * times.computing_s, 10 + 20 + 10 + 3, 1e-6);
  EXPECT_NEAR(1e9 * times.communication_s, 38 + 24, 1e-6);
  EXPECT_NEAR(1e9 * times.exposed_s, 18 + 24, 1e-6);
  EXPECT_NEAR(1e9 * times.idle_s, 100 - 43 - 42, 1e-6);
}

TEST(TraceTimes, OfStampsWithNothingBesideTheExchange) {
  auto const times = times_of(clock_trace(stamped(30, false), 2));
  EXPECT_NEAR(1e9 * times.exposed_s, 38 + 24, 1e-6);
  EXPECT_EQ(overlapped(times.exposed_s, times.communication_s), 0);
  EXPECT_EQ(times_of(clock_trace(stamped(30, false), 1)).communication_s, 0);
}

TEST(TraceTimes, StampsWithoutAWholeIterationAreNothing) {
  EXPECT_EQ(times_of(clock_trace(stamped(1, true), 2)).clock, IterationTimes::Clock::none);
}

}  // namespace
}  // namespace hostless::gpu
