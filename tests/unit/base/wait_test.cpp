#include "hostless/base/wait.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <new>
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

// What a process that waits and the test tell each other.
struct Shared {
  std::atomic<long> polls{0};
  std::atomic<bool> goes_on{false};
};

/// How a wait of so long ends in a process that is stopped for longer, where what it waits for comes when it has looked
/// five times since: as if the peer had been stopped with it.
Waited waited_of_stopped(double limit_s) {
  std::chrono::duration<double> const stopped_for(3 * limit_s);
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto& shared = *new (memory) Shared;
  pid_t const child = fork();
  if (child == 0) {
    int looks_since = 0;
    auto const waited = wait_for(
        [&] {
          ++shared.polls;
          return shared.goes_on.load() && ++looks_since > 5;
        },
        never, Deadline::after(limit_s));
    _exit(static_cast<int>(waited));
  }
  constexpr long yielding = 300;  // from there on each poll is a look
  while (shared.polls.load() < yielding) std::this_thread::yield();
  kill(child, SIGSTOP);
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  bool const was_waiting = WIFSTOPPED(status);
  std::this_thread::sleep_for(stopped_for);
  shared.goes_on = true;
  kill(child, SIGCONT);
  if (was_waiting) waitpid(child, &status, 0);
  munmap(memory, sizeof(Shared));
  EXPECT_TRUE(WIFEXITED(status));
  return was_waiting ? static_cast<Waited>(WEXITSTATUS(status)) : Waited::late;
}
TEST(WaitFor, ProcessThatWasStoppedLooksOn) {
  // On a busy machine the first may be over before it is stopped, or have no time to look.
  EXPECT_TRUE(waited_of_stopped(0.5) == Waited::done || waited_of_stopped(5) == Waited::done);
}

// Looks that are far apart are slow peers' time as far as a quarter of it: four of them end a wait, three do not.
TEST(Countdown, CountsAQuarterBetweenTwoLooks) {
  Countdown countdown(Deadline::after(0.2));
  for (int look = 1; look <= 3; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    EXPECT_FALSE(countdown.is_over()) << look;
  }
  int more = 0;
  while (!countdown.is_over()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    ++more;
  }
  EXPECT_LE(more, 1);
}
TEST(Countdown, IsOverWhereNothingIsLeft) {
  for (double const seconds : {0.0, -1.0}) EXPECT_TRUE(Countdown(Deadline::after(seconds)).is_over());
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
