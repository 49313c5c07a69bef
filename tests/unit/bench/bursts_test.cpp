#include "bench/bursts.hpp"

#include <gtest/gtest.h>

#include "wrong_transport.hpp"

namespace hostless::bench {
namespace {

TEST(Bursts, PairsAnswerAndTheOthersWait) {
  run_with_threads_transport(5, [](Transport& transport) {
    for (Burst const& burst :
         {Burst{{{0, 3}, {4, 1}}, 64, 7}, Burst{{{2, 0}}, 70000, 2}, Burst{{{1, 2}}, 1, 1}}) {
      Timing const timing = time_burst(transport, burst, 1e-3, WaitLimits::from_environment());
      ASSERT_EQ(timing.step_s.size(), 5U);
      EXPECT_GT(timing.best(), 0);
      EXPECT_LE(timing.best(), timing.worst());
      EXPECT_EQ(transport.group().max(timing.median()), transport.group().min(timing.median()));
    }
  });
}

TEST(Bursts, WhatArrivesIsCompared) {
  for (Fault const fault : {Fault::other_message, Fault::other_middle})
    expect_error(2, ErrorCode::environment, "brought something else", fault, [&](Transport& transport) {
      time_burst(transport, {{{0, 1}}, 4097, 3}, 1e-3, brief().limits);
    });
}

TEST(Bursts, ImpossibleOnesAreRefusedByAll) {
  Burst const wrong[] = {
      {{{0, 2}}, 8, 1}, {{{0, 1}, {1, 0}}, 8, 1}, {{{0, 1}}, 0, 1}, {{{0, 1}}, 8, 0}, {{}, 8, 1}};
  for (Burst const& burst : wrong)
    EXPECT_THROW(run_with_threads_transport(
                     2, [&](Transport& transport) { time_burst(transport, burst, 1e-3, brief().limits); }),
                 Error);
}

}  // namespace
}  // namespace hostless::bench
