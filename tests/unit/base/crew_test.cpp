#include "base/crew.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "hostless/base/wait.hpp"

namespace hostless {
namespace {

// Each call waits for all others, so calls one after the other would not end in time.
TEST(Crew, AllAtTheSameTimeAndTheFirstOnTheCallersThread) {
  constexpr int count = 4;
  std::array<std::thread::id, count> on;
  std::atomic<int> here{0}, late{0}, ended{0};
  auto const one = [&](int number) {
    on[static_cast<std::size_t>(number)] = std::this_thread::get_id();
    ++here;
    auto const waited = wait_for([&] { return here == count; }, [] { return false; }, Deadline::after(60));
    if (waited != Waited::done) ++late;
    ++ended;
  };
  EXPECT_EQ(run_crew(count, one, [] { ADD_FAILURE() << "gave up"; }), count);
  EXPECT_EQ(ended, count);
  EXPECT_EQ(late, 0);
  EXPECT_EQ(on[0], std::this_thread::get_id());
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(on[i], on[j]) << i << " and " << j;
  }
}

TEST(Crew, OneNeedsNoThread) {
  int calls = 0;
  auto const one = [&](int number) {
    EXPECT_EQ(number, 0);
    ++calls;
  };
  EXPECT_EQ(run_crew(1, one, [] { ADD_FAILURE() << "gave up"; }), 1);
  EXPECT_EQ(calls, 1);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they map terabytes

// In a child, which has room for the stacks of some threads, not of 512.
[[noreturn]] void run_a_crew_that_does_not_fit() {
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
    auto const waited = wait_for([] { return false; }, [&] { return given_up > 0; }, Deadline::after(60));
    if (waited == Waited::late) ++late;
    ++ended;
  };
  int const possible = run_crew(count, one, [&] { ++given_up; });
  std::fprintf(stderr, "fewer: %d, counted: %d, first: %d, gave up: %d, late: %d.", possible < count,
               possible == ended + 1, first.load(), given_up.load(), late.load());
  std::exit(0);
}

TEST(CrewDeathTest, WithoutRoomForAllNobodyWaitsForTheFirst) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(run_a_crew_that_does_not_fit(), ::testing::ExitedWithCode(0),
              "fewer: 1, counted: 1, first: 0, gave up: 1, late: 0\\.");
}

#endif

}  // namespace
}  // namespace hostless
