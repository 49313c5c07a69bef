// What `bench pingpong`, `halo` and `life` measure of queues checks what it measures; here, that it is right
// on threads.
#include <gtest/gtest.h>

#include "bench/life.hpp"

namespace hostless::bench {
namespace {

Protocol brief() {
  Protocol protocol;
  protocol.warm_up = 3;
  protocol.steps = 10;
  protocol.repeat = 2;
  return protocol;
}

TEST(QueueBench, PingPong) {
  run_with_threads_transport(3, [](Transport& t) {
    QueuePingPong what;
    what.first = 2;
    what.second = 0;
    what.bytes = {1, 100, 8192, 8193, 300000};
    auto const timings = queue_ping_pong(t, what, brief());
    ASSERT_EQ(timings.size(), what.bytes.size());
    for (QueuePingPongTiming const& timing : timings)
      for (Driver const driver : {Driver::standard, Driver::ready, Driver::host}) {
        EXPECT_EQ(timing.of(driver).step_s.size(), 2u);
        EXPECT_GT(timing.of(driver).best(), 0.0);
      }
    EXPECT_THROW(queue_ping_pong(t, {QueueType::mpi, 0, 1, {8}}, brief()), Error);
  });
}

TEST(QueueBench, LifeOnAnyRanks) {
  for (int const ranks : {1, 2, 3, 4, 6})
    run_with_threads_transport(ranks, [&](Transport& t) {
      Life what;
      what.rows = 24;
      what.columns = 40;
      square_of(ranks, what.ranks_along);
      for (Driver const driver : {Driver::standard, Driver::ready, Driver::host}) {
        LifeTiming const timing = life(t, what, driver, brief());
        EXPECT_TRUE(timing.is_right) << ranks << " ranks, " << name(driver);
        EXPECT_EQ(timing.alive, 5 * 3 * 5) << ranks << " ranks, " << name(driver);
        EXPECT_EQ(timing.messages > 0, ranks > 1);
      }
      what.rows = 23;
      EXPECT_THROW(life(t, what, Driver::standard, brief()), Error);
    });
}

}  // namespace
}  // namespace hostless::bench
