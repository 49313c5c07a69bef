#include "hostless/base/wait.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace hostless {
namespace {

auto const never = [] { return false; };

TEST(WaitFor, ReadyAtOnceNeedsNoTime) {
  int polls = 0;
  EXPECT_EQ(wait_for([&] { return ++polls == 1; }, never, Deadline::after(-1)), Waited::done);
  EXPECT_EQ(polls, 1);
}

TEST(WaitFor, SeesWhatAnotherThreadDoes) {
  std::atomic<bool> ready{false};
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ready = true;
  });
  EXPECT_EQ(wait_for([&] { return ready.load(); }, never, Deadline::after(240)), Waited::done);
  other.join();
}

TEST(WaitFor, StopsWhenTold) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop = true;
  });
  EXPECT_EQ(wait_for(
                never, [&] { return stop.load(); }, Deadline::after(240)),
            Waited::stopped);
  other.join();
}

// What arrived before the stop counts: a rank that leaves after its last word has not failed its peers.
TEST(WaitFor, ReadyWinsOverStop) {
  bool stopped = false;
  EXPECT_EQ(wait_for([&] { return stopped; }, [&] { return stopped = true; }, Deadline::after(240)),
            Waited::done);
}

TEST(WaitFor, EndsSoonAfterItsDeadline) {
  auto const start = Clock::now();
  EXPECT_EQ(wait_for(never, never, Deadline::after(0.05)), Waited::late);
  double const took = std::chrono::duration<double>(Clock::now() - start).count();
  EXPECT_GE(took, 0.05);
  EXPECT_LT(took, 120.0);  // a loaded machine, but not a second deadline
}

TEST(Backoff, LooksAtTheClockEvery64PollsWhileSpinningAndAfterEveryYield) {
  Backoff backoff;
  int looks = 0;
  for (int poll = 0; poll < 200; ++poll, backoff.pause()) looks += backoff.look() ? 1 : 0;
  EXPECT_EQ(looks, 4);  // 0, 64, 128, 192
  looks = 0;
  for (int poll = 0; poll < 50; ++poll, backoff.pause()) looks += backoff.look() ? 1 : 0;
  EXPECT_EQ(looks, 50);
}

TEST(Backoff, NapsInTheEnd) {
  Backoff backoff;
  for (int poll = 0; poll < 20000; ++poll) backoff.pause();
  auto const start = Clock::now();
  for (int poll = 0; poll < 10; ++poll) backoff.pause();
  EXPECT_GE(Clock::now() - start, std::chrono::microseconds(500));
}

}  // namespace
}  // namespace hostless
