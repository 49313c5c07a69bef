// A rank that goes, or says nothing: everybody's waits and loops end.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "exchange_cases.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/exchange/exchange.hpp"

namespace hostless {
namespace {

using testing::alone;
using testing::patient;
using testing::Reads;

TEST(Loss, AllRanksEndAndStayEnded) {
  run_with_threads_transport(3, [&](Transport& transport) {
    int const me = transport.group().rank();
    ExchangePlan const plan = alone(3, me);
    double vector = 0, total = 0;
    Exchange wire(transport, plan, &vector, Reduction::ordered, {600, 600});
    auto const begin = Clock::now();
    if (me == 1) {
      wire.leave();
    } else {
      double const one = 1;
      wire.begin_sum({&one, 1});
      EXPECT_FALSE(wire.finish_sum({&total, 1}));
    }
    EXPECT_TRUE(wire.lost());
    EXPECT_FALSE(wire.wait());
    EXPECT_LT(std::chrono::duration<double>(Clock::now() - begin).count(), 240);
  });
}

TEST(Loss, ASilentRankIsLostAtTheDeadline) {
  std::atomic<bool> gave_up{false};
  run_with_threads_transport(2, [&](Transport& transport) {
    int const me = transport.group().rank();
    ExchangePlan const plan = alone(2, me);
    double vector = 0, total = 0;
    Exchange wire(transport, plan, &vector, Reduction::ordered, {0.2, 0.2});
    if (me == 0) {
      auto const begin = Clock::now();
      double const one = 1;
      wire.begin_sum({&one, 1});
      EXPECT_FALSE(wire.finish_sum({&total, 1}));
      double const waited = std::chrono::duration<double>(Clock::now() - begin).count();
      EXPECT_GE(waited, 0.2);
      EXPECT_LT(waited, 120);
      EXPECT_GE(wire.waited_s(), 0.2);
      gave_up = true;
    } else {
      EXPECT_EQ(wait_for([&] { return gave_up.load(); }, [] { return false; }, Deadline::after(240)),
                Waited::done);
      EXPECT_FALSE(wire.wait([] { return false; }));  // hears that rank 0 left
    }
  });
}

// A loop of test() alone ends as wait() does: at once where a peer goes, at the limit where it is silent.
TEST(Loss, ALoopOfTestsEnds) {
  Reads const reads = Reads({1, 1}).add(0, 0, {1});
  for (bool const goes : {true, false}) {
    std::atomic<bool> over{false};
    run_with_threads_transport(2, [&](Transport& transport) {
      Rank const me = transport.group().rank();
      ExchangePlan const plan = make_plan(Route::direct, reads.patterns(), NodeMap::blocks(2, 2), me,
                                          {ReuseGuarantee::answer, Space::host, true});
      double own = 7, ghost = 0;
      double const limit = goes ? 600 : 0.3;
      Exchange wire(transport, plan, {Field::apart(&own, &ghost, 8)}, {{limit, limit}, {}, {}});
      if (me == 0) {
        if (goes) wire.leave();
        wait_for([&] { return over.load(); }, [] { return false; }, Deadline::after(300));
        return;
      }
      auto const begin = Clock::now();
      auto const waited = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
      wire.start();
      while (!wire.test() && !wire.lost() && waited() < 240) Backoff::give_core_away();
      over = true;
      EXPECT_TRUE(wire.lost());
      EXPECT_FALSE(wire.test());
      EXPECT_LT(waited(), 120);
      if (!goes) {
        EXPECT_GE(waited(), 0.3);
      }
      EXPECT_FALSE(wire.wait());
      wire.start();  // nothing, as after every loss
      EXPECT_EQ(ghost, 0);
    });
  }
}

// Whoever was away for longer than the limit still finds what has come meanwhile, and what takes two calls.
TEST(Loss, TimeBetweenTwoCallsIsNobodysSilence) {
  Reads const reads = Reads({1, 1}).add(0, 0, {1}).add(1, 0, {0});
  std::atomic<bool> started{false}, answered{false};
  run_with_threads_transport(2, [&](Transport& transport) {
    Rank const me = transport.group().rank();
    ExchangePlan const plan = make_plan(Route::direct, reads.patterns(), NodeMap::blocks(2, 2), me,
                                        {ReuseGuarantee::answer, Space::host, true});
    auto const until = [](std::atomic<bool> const& happened) {
      wait_for([&] { return happened.load(); }, [] { return false; }, Deadline::after(300));
    };
    double own = 7 + me, ghost = 0;
    Exchange wire(transport, plan, {Field::apart(&own, &ghost, 8)}, {{0.4, 0.4}, {}, {}});
    if (me == 1) until(started);
    wire.start();
    if (me == 1) answered = true;
    if (me == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(600));
      EXPECT_FALSE(wire.test());
      EXPECT_FALSE(wire.lost());
      started = true;
      until(answered);
    }
    while (!wire.test() && !wire.lost()) Backoff::give_core_away();
    EXPECT_FALSE(wire.lost());
    EXPECT_EQ(ghost, 8 - me);
  });
}

// It has no ghosts, so what it would contribute is wrong: a rank that comes late must not find a complete
// sum.
TEST(Loss, WhoGaveUpContributesNothing) {
  std::atomic<bool> over{false};
  run_with_threads_transport(2, [&](Transport& transport) {
    int const me = transport.group().rank();
    ExchangePlan const plan = alone(2, me);
    double vector = 0, total = 0;
    Exchange wire(transport, plan, &vector, Reduction::ordered, {0.1, 0.1});
    double const one = 1;
    if (me == 0) {
      EXPECT_FALSE(wire.wait([] { return false; }));
      wire.begin_sum({&one, 1});
      EXPECT_FALSE(wire.finish_sum({&total, 1}));
      over = true;
    } else {
      wait_for([&] { return over.load(); }, [] { return false; }, Deadline::after(240));
      wire.begin_sum({&one, 1});
      EXPECT_FALSE(wire.finish_sum({&total, 1})) << "the sum is " << total;
    }
  });
}

}  // namespace
}  // namespace hostless
