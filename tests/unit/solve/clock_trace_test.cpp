// Spans by hand, and by random ones that are counted moment by moment.
#include "solve/clock_trace.hpp"

#include <gtest/gtest.h>

#include <random>

#include "hostless/transport/group.hpp"

namespace hostless {
namespace {

ClockTrace trace_of(std::vector<Span> computing, std::vector<Span> communication, Span looked_at,
                    std::int64_t iterations) {
  return {IterationTimes::Clock::kernel, looked_at, iterations, std::move(computing),
          std::move(communication)};
}

void expect_times(IterationTimes const& times, double computing, double exposed, double idle,
                  double communication) {
  EXPECT_DOUBLE_EQ(times.computing_s, computing);
  EXPECT_DOUBLE_EQ(times.exposed_s, exposed);
  EXPECT_DOUBLE_EQ(times.idle_s, idle);
  EXPECT_DOUBLE_EQ(times.communication_s, communication);
  EXPECT_DOUBLE_EQ(times.iteration_s, computing + exposed + idle);
}

TEST(ClockTrace, CommunicationThatIsHiddenWhollyInPartAndNotAtAll) {
  expect_times(times_of(trace_of({{0, 8}}, {{2, 6}}, {0, 8}, 1)), 8, 0, 0, 4);
  expect_times(times_of(trace_of({{0, 3}, {5, 6}}, {{2, 5}}, {0, 8}, 1)), 4, 2, 2, 3);
  expect_times(times_of(trace_of({{0, 4}}, {{4, 6}, {5, 8}}, {0, 8}, 1)), 4, 4, 0, 4);
  EXPECT_DOUBLE_EQ(overlapped(2, 3), 1 - 2.0 / 3.0);
}

TEST(ClockTrace, BlocksComputeWhileOneOfThemDoesAndOutsideNothingCounts) {
  auto const times = times_of(trace_of({{-5, 1}, {0, 2}, {1, 3}, {7, 99}}, {{2, 4}, {3, 5}}, {0, 8}, 2));
  expect_times(times, 2, 1, 1, 1.5);
  EXPECT_EQ(times.iterations, 2);
}

TEST(ClockTrace, WithoutComputingNothingIsOverlapped) {
  auto const times = times_of(trace_of({}, {{0, 3}, {4, 8}}, {0, 8}, 4));
  expect_times(times, 0, 1.75, 0.25, 1.75);
  EXPECT_EQ(overlapped(times.exposed_s, times.communication_s), 0);
}

TEST(ClockTrace, WithoutCommunicationThereIsNoShare) {
  auto const times = times_of(trace_of({{0, 6}}, {}, {0, 8}, 1));
  expect_times(times, 6, 0, 2, 0);
  EXPECT_EQ(overlapped(times.exposed_s, times.communication_s), 0);
}

TEST(ClockTrace, WithoutAWholeIterationThereIsNothing) {
  EXPECT_EQ(times_of(trace_of({{0, 1}}, {{0, 1}}, {0, 1}, 0)).clock, IterationTimes::Clock::none);
  EXPECT_EQ(times_of(trace_of({{0, 1}}, {{0, 1}}, {1, 1}, 1)).clock, IterationTimes::Clock::none);
}

TEST(ClockTrace, AgreesWithCountingMoments) {
  std::mt19937 random(5);
  auto const spans = [&] {
    std::vector<Span> all(random() % 9);
    for (Span& span : all) {
      span.begin = static_cast<double>(random() % 64);
      span.end = span.begin + static_cast<double>(random() % 20);
    }
    return all;
  };
  for (int round = 0; round < 500; ++round) {
    auto const computing = spans(), communication = spans();
    Span const looked_at{4, 60};
    double computes = 0, exposed = 0, idle = 0, communicates = 0;
    for (int moment = 4; moment < 60; ++moment) {
      auto const inside = [&](std::vector<Span> const& all) {
        return std::any_of(all.begin(), all.end(),
                           [&](Span const& s) { return s.begin <= moment && moment < s.end; });
      };
      bool const c = inside(computing), m = inside(communication);
      computes += c ? 1 : 0;
      communicates += m ? 1 : 0;
      exposed += m && !c ? 1 : 0;
      idle += !m && !c ? 1 : 0;
    }
    auto const times = times_of(trace_of(computing, communication, looked_at, 1));
    EXPECT_NEAR(times.computing_s, computes, 1e-9);
    EXPECT_NEAR(times.exposed_s, exposed, 1e-9);
    EXPECT_NEAR(times.idle_s, idle, 1e-9);
    EXPECT_NEAR(times.communication_s, communicates, 1e-9);
  }
}

TEST(ClockTrace, ThePapersShareIsOfCommunicationAndStaysInItsRange) {
  EXPECT_DOUBLE_EQ(overlapped_by_runs(10, 4, 14), 0);  // one after the other
  EXPECT_DOUBLE_EQ(overlapped_by_runs(10, 4, 11), 0.75);
  EXPECT_DOUBLE_EQ(overlapped_by_runs(10, 4, 10), 1);  // all of it beside computing
  EXPECT_DOUBLE_EQ(overlapped_by_runs(10, 4, 9), 1);   // measured on another day
  EXPECT_DOUBLE_EQ(overlapped_by_runs(10, 4, 20), 0);  // and so much else
  EXPECT_DOUBLE_EQ(overlapped_by_runs(10, 0, 10), 0);
}

TEST(ClockTrace, OfAllRanksIsThatOfTheOneThatWaitsLeast) {
  run_on_threads(4, [](Group& group) {
    IterationTimes mine;
    double const exposed[] = {3, 1, 2, 0};
    mine.clock = group.rank() == 3 ? IterationTimes::Clock::none : IterationTimes::Clock::phases;
    mine.iteration_s = 10;
    mine.exposed_s = exposed[group.rank()];
    EXPECT_EQ(of_all_ranks(group, mine).exposed_s, 1);
    EXPECT_EQ(of_all_ranks(group, {}).clock, IterationTimes::Clock::none);
  });
}

}  // namespace
}  // namespace hostless
