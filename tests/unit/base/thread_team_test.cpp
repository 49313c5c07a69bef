#include "base/thread_team.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "base/processors.hpp"
#include "hostless/base/wait.hpp"

namespace hostless {
namespace {

// Each call waits for all others, so calls one after the other would not end in time.
TEST(ThreadTeam, AllAtTheSameTimeAndTheFirstOnTheCallersThread) {
  constexpr int count = 4;
  std::array<std::thread::id, count> on;
  std::atomic<int> here{0}, late{0}, ended{0};
  auto const one = [&](int number) {
    on[static_cast<std::size_t>(number)] = std::this_thread::get_id();
    ++here;
    auto const waited = wait_for([&] { return here == count; }, [] { return false; }, Deadline::after(240));
    if (waited != Waited::done) ++late;
    ++ended;
    return true;
  };
  EXPECT_EQ(run_thread_team(count, one, [] { ADD_FAILURE() << "gave up"; }), count);
  EXPECT_EQ(ended, count);
  EXPECT_EQ(late, 0);
  EXPECT_EQ(on[0], std::this_thread::get_id());
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(on[i], on[j]) << i << " and " << j;
  }
}

TEST(ThreadTeam, OneNeedsNoThread) {
  int calls = 0;
  auto const one = [&](int number) {
    EXPECT_EQ(number, 0);
    ++calls;
    return true;
  };
  EXPECT_EQ(run_thread_team(1, one, [] { ADD_FAILURE() << "gave up"; }), 1);
  EXPECT_EQ(calls, 1);
}

std::atomic<int> told{0};  // that somebody is stuck

// Member `stuck` of three goes on until that has been told, the others fail at once; true when it was told in
// time.
bool is_told_of(int stuck) {
  told = 0;
  setenv("HOSTLESS_DEADLINE_SCALE", "0.001", 1);
  when_stuck([](std::string const&) { ++told; });
  bool in_time = false;
  auto const one = [&](int number) {
    if (number != stuck) return false;
    in_time = wait_for([] { return told == 1; }, [] { return false; }, Deadline::after(120)) == Waited::done;
    return true;
  };
  EXPECT_EQ(run_thread_team(3, one, [] {}), 3);
  when_stuck(nullptr);
  unsetenv("HOSTLESS_DEADLINE_SCALE");
  return in_time && told == 1;
}

TEST(ThreadTeam, AMemberThatDoesNotEndAfterAFailureIsTold) {
  EXPECT_TRUE(is_told_of(2));
  EXPECT_TRUE(is_told_of(0)) << "the caller's own thread";
}

TEST(ThreadTeam, AMemberThatIsOnlySlowIsNotTold) {
  EXPECT_FALSE(is_told_of(-1));
  told = 0;  // a busy machine's threads may end later than that after a failure
  setenv("HOSTLESS_DEADLINE_SCALE", "0.001", 1);
  when_stuck([](std::string const&) { ++told; });
  auto const slow = [](int number) {  // more than the deadline of 0.06 s, and nobody has failed
    if (number == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return true;
  };
  EXPECT_EQ(run_thread_team(3, slow, [] {}), 3);
  when_stuck(nullptr);
  unsetenv("HOSTLESS_DEADLINE_SCALE");
  EXPECT_EQ(told, 0);
}

TEST(SharedWork, EveryPartOnceByAnyNumberOfThreads) {
  for (int threads : {-1, 0, 1, 2, 7}) {
    for (int parts : {0, 1, 3, 100}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(parts));
      share_out(threads, parts, [&](int part) { ++calls[static_cast<std::size_t>(part)]; });
      for (auto const& times : calls) EXPECT_EQ(times, 1) << threads << " threads, " << parts << " parts";
    }
  }
}

TEST(SharedWork, OneThreadIsTheCallers) {
  share_out(1, 5,
            [caller = std::this_thread::get_id()](int) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

// Parts 2 and 5 wait for each other, so that they fail at the same time.
TEST(SharedWork, TheLowestPartThatFailsIsHeard) {
  std::atomic<int> calls{0}, failing{0};
  try {
    share_out(3, 9, [&](int part) {
      ++calls;
      if (part != 2 && part != 5) return;
      ++failing;
      static_cast<void>(wait_for([&] { return failing == 2; }, [] { return false; }, Deadline::after(240)));
      throw part;
    });
    ADD_FAILURE() << "nobody heard of it";
  } catch (int part) {
    EXPECT_EQ(part, 2);
  }
  EXPECT_EQ(failing, 2);
  EXPECT_EQ(calls, 9);
}

TEST(SharedWork, PartsForThreads) {
  EXPECT_EQ(parts_for(1, 1000), 1);
  EXPECT_EQ(parts_for(0, 1000), 1);
  EXPECT_EQ(parts_for(4, 1000), 16);
  EXPECT_EQ(parts_for(4, 7), 7);
  EXPECT_EQ(parts_for(4, 0), 1);
}

TEST(Processors, AreSharedByTheRanksOfAMachine) {
  int const all = processors_of_rank(1, true);
  EXPECT_GE(all, 1);
  EXPECT_EQ(processors_of_rank(1, false), all);
  EXPECT_EQ(processors_of_rank(2 * all, true), 1);
  EXPECT_EQ(processors_of_rank(1 << 20, false), 1);
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before)) continue;
    CPU_SET(cpu, &one);
    break;
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(processors_of_rank(1, true), 1);
  EXPECT_EQ(processors_of_rank(1, false), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

#if !HOSTLESS_ADDRESS_SANITIZER && !HOSTLESS_THREAD_SANITIZER  // they map terabytes

// In a child, which has room for the stacks of some threads, not of 512.
[[noreturn]] void run_a_team_that_does_not_fit() {
  std::ifstream sizes("/proc/self/statm");
  rlim_t pages = 0;
  sizes >> pages;
  rlim_t const limit = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{200} << 20);
  rlimit const room{limit, limit};
  setrlimit(RLIMIT_AS, &room);

  constexpr int count = 512;
  std::atomic<int> given_up{0}, ended{0}, late{0};
  std::atomic<bool> first{false};
  auto const one = [&](int number) {
    if (number == 0) first = true;
    auto const waited = wait_for([] { return false; }, [&] { return given_up > 0; }, Deadline::after(240));
    if (waited == Waited::late) ++late;
    ++ended;
    return false;
  };
  int const possible = run_thread_team(count, one, [&] { ++given_up; });
  std::fprintf(stderr, "fewer: %d, counted: %d, first: %d, gave up: %d, late: %d.", possible < count,
               possible == ended + 1, first.load(), given_up.load(), late.load());
  std::exit(0);
}

TEST(ThreadTeamDeathTest, WithoutRoomForAllNobodyWaitsForTheFirst) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(run_a_team_that_does_not_fit(), ::testing::ExitedWithCode(0),
              "fewer: 1, counted: 1, first: 0, gave up: 1, late: 0\\.");
}

#endif

// A small limit (ulimit -s) leaves ranks no room for their frames, which may step over the guard page behind it.
TEST(ThreadTeam, StacksHaveRoomWhateverTheLimit) {
  pthread_attr_t before, small;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_getattr_default_np(&small), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&small, std::size_t{64} << 10), 0);
  ASSERT_EQ(pthread_setattr_default_np(&small), 0);  // what RLIMIT_STACK does before a program begins
  std::array<std::size_t, 3> room{};
  auto const look = [&](int number) {
    pthread_attr_t mine;
    pthread_getattr_np(pthread_self(), &mine);
    pthread_attr_getstacksize(&mine, &room[static_cast<std::size_t>(number)]);
    pthread_attr_destroy(&mine);
    return true;
  };
  EXPECT_EQ(run_thread_team(3, look, [] { ADD_FAILURE() << "gave up"; }), 3);
  pthread_setattr_default_np(&before);
  pthread_attr_destroy(&small);
  pthread_attr_destroy(&before);
  EXPECT_GE(room[1], Thread::least_stack);
  EXPECT_GE(room[2], Thread::least_stack);
}

}  // namespace
}  // namespace hostless
