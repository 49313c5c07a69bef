#include "hostless/machine/bandwidth.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "hostless/base/error.hpp"

namespace hostless {
namespace {

/// Bytes a second that a plain loop reads, or with `write` reads and writes as a triad does; one thread, the
/// best of three passes over arrays that no cache holds.
double plain_loop(bool write) {
  constexpr std::size_t count = std::size_t{16} << 20;  // 128 MiB each
  static std::vector<double> a(count, 1), b(count, 2), c(count, 3);
  double best = 0;
  for (int pass = 0; pass < 3; ++pass) {
    auto const start = std::chrono::steady_clock::now();
    if (write) {
      for (std::size_t k = 0; k < count; ++k) a[k] = b[k] + 0.5 * c[k];
    } else {
      double sum[8] = {};
      for (std::size_t k = 0; k < count; k += 8)
        for (std::size_t j = 0; j < 8; ++j) sum[j] += a[k + j];
      static double volatile kept;
      for (double one : sum) kept = one;
      (void)kept;
    }
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - start;
    best = std::max(best, (write ? 3.0 : 1.0) * count * sizeof(double) / took.count());
  }
  return best;
}

// Against a loop of the test's own on the same machine, which is not written for speed. Others may disturb
// one of the two, so there are many attempts, which a quiet moment ends; what a loop whose reads were optimised
// away, or one that counts its bytes ten times, would show lies far above in each.
constexpr int attempts = 60;
TEST(Bandwidth, IsNearThatOfAPlainLoop) {
  if (HOSTLESS_ADDRESS_SANITIZER || HOSTLESS_THREAD_SANITIZER)
    GTEST_SKIP() << "a sanitizer slows down the one and the other differently";
  double read = 0, triad = 0;  // over those of plain loops
  auto const near = [](double ratio) { return ratio > 1.0 / 3 && ratio < 5; };
  for (int attempt = 0; attempt < attempts && !(near(read) && near(triad)); ++attempt) {
    if (!near(read)) read = measure_read_bandwidth(1, 0.05) / plain_loop(false);
    if (!near(triad)) triad = measure_triad_bandwidth(1, 0.05) / plain_loop(true);
  }
  EXPECT_TRUE(near(read)) << read;
  EXPECT_TRUE(near(triad)) << triad;
}

TEST(Bandwidth, TwoThreadsTogether) {
  double ratio = 0;  // of many attempts, as above
  for (int attempt = 0; attempt < attempts && !(ratio > 0.25 && ratio < 4); ++attempt)
    ratio = measure_read_bandwidth(2, 0.05) / measure_read_bandwidth(1, 0.05);
  EXPECT_GT(ratio, 0.25);  // of a processor that others use as well
  EXPECT_LT(ratio, 4);
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

// Those who wait for the others to write are late: that is no fault of the memory.
TEST(Bandwidth, ThreadsThatAreLateAreCalledSo) {
  constexpr char const* scale = "HOSTLESS_DEADLINE_SCALE";
  std::string const before = std::getenv(scale) != nullptr ? std::getenv(scale) : "1";
  setenv(scale, "1e-12", 1);
  std::string said;
  try {
    measure_read_bandwidth(3, 1e-3);
  } catch (Error const& e) {
    said = e.what();
  }
  setenv(scale, before.c_str(), 1);
  EXPECT_EQ(said.find("a thread waited too long for the other ones of 3 "), 0u) << said;
}

}  // namespace
}  // namespace hostless
