#include "hostless/machine/bandwidth.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#include "hostless/base/error.hpp"

namespace hostless {
namespace {

// Wide physical limits: a slow emulated core reads more than 20 MB/s, and no memory gives a thread 2 TB/s.
// What a loop whose reads were optimised away would show lies above them.
constexpr double slowest = 2e7, fastest_a_thread = 2e12;

TEST(Bandwidth, ReadIsPhysical) {
  for (int threads : {1, 2}) {
    double const rate = measure_read_bandwidth(threads, 0.05);
    EXPECT_GT(rate, slowest);
    EXPECT_LT(rate, fastest_a_thread * threads);
  }
}

TEST(Bandwidth, TriadIsPhysical) {
  double const rate = measure_triad_bandwidth(2, 0.05);
  EXPECT_GT(rate, slowest);
  EXPECT_LT(rate, 2 * fastest_a_thread);
}

TEST(Bandwidth, LastsAsLongAsAsked) {
  auto const start = std::chrono::steady_clock::now();
  measure_read_bandwidth(1, 0.2);
  EXPECT_GE(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 0.2);
}

TEST(Bandwidth, ArraysExceedTheCachesFourTimes) {
  static_assert(bandwidth_bytes(0) == std::int64_t{64} << 20);
  static_assert(bandwidth_bytes(std::int64_t{32} << 20) == std::int64_t{128} << 20);
  static_assert(bandwidth_bytes(std::int64_t{1} << 33) == std::int64_t{1} << 35);
}

template <class Call>
void expect_usage_error(Call const& call, std::string const& value) {
  try {
    call();
    FAIL() << "no error";
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), ErrorCode::usage);
    EXPECT_NE(std::string(e.what()).find(value), std::string::npos) << e.what();
  }
}

TEST(Bandwidth, RefusesWhatCannotBeMeasured) {
  expect_usage_error([] { measure_read_bandwidth(0, 1.0); }, "threads is 0");
  expect_usage_error([] { measure_triad_bandwidth(-3, 1.0); }, "threads is -3");
  expect_usage_error([] { measure_read_bandwidth(1, 0.0); }, "seconds is 0");
  expect_usage_error([] { measure_read_bandwidth(1, std::numeric_limits<double>::quiet_NaN()); }, "nan");
  expect_usage_error([] { measure_read_bandwidth(1, std::numeric_limits<double>::infinity()); }, "inf");
}

#if !HOSTLESS_ADDRESS_SANITIZER && !HOSTLESS_THREAD_SANITIZER  // they map terabytes, and end on a failing new

// hwloc takes the caches of a described machine from the environment, and every such case has a child of its
// own.
class BandwidthOfPoorMachine : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
  template <class Call>
  [[noreturn]] static void report(Call const& call) {
    try {
      call();
    } catch (Error const& e) {
      std::fprintf(stderr, "code %d: %s", static_cast<int>(e.code()), e.what());
    }
    std::exit(0);
  }
};

TEST_F(BandwidthOfPoorMachine, WithoutMemoryForTheArray) {
  auto const measure = [] {
    setenv("HWLOC_SYNTHETIC", "pack:1 l3:1(size=1152921504606846976) pu:1", 1);  // no machine has 2^62 bytes
    report([] { measure_read_bandwidth(1, 0.01); });
  };
  EXPECT_EXIT(measure(), ::testing::ExitedWithCode(0), "code 4: no memory for 4398046511104 MiB");
}

TEST_F(BandwidthOfPoorMachine, WithoutRoomForItsThreads) {
  auto const measure = [] {
    setenv("HWLOC_SYNTHETIC", "pack:1 l3:1(size=1048576) pu:1", 1);
    std::ifstream sizes("/proc/self/statm");
    rlim_t pages = 0;
    sizes >> pages;
    // Room for the array of 64 MiB and for the stacks of some threads, not of 512.
    rlim_t const limit = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{400} << 20);
    rlimit const room{limit, limit};
    setrlimit(RLIMIT_AS, &room);
    report([] { measure_read_bandwidth(512, 0.01); });
  };
  EXPECT_EXIT(measure(), ::testing::ExitedWithCode(0), "code 4: thread [0-9]+ of 512 cannot be started");
}

#endif

}  // namespace
}  // namespace hostless
