#include "hostless/machine/memory.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

namespace hostless {
namespace {

namespace fs = std::filesystem;

/// A machine's /proc and /sys in a folder.
class Machine : public testing::Test {
 protected:
  Machine() {
    std::string name = (fs::temp_directory_path() / "hostless-memory-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~Machine() override { fs::remove_all(root_); }

  void write(std::string const& file, std::string const& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  void has(long available_kib, long swap_kib = 0) {
    write("proc/meminfo",
          "MemTotal:  99999999 kB\nMemFree: 1 kB\nMemAvailable:   " + std::to_string(available_kib) +
              " kB\nSwapFree: " + std::to_string(swap_kib) + " kB\n");
  }
  MemoryRoom room() const { return machine_memory_room(root_); }

  fs::path root_;
};

TEST_F(Machine, NothingKnownIsNoLimit) { EXPECT_TRUE(std::isinf(room().bytes)); }

TEST_F(Machine, TheKernelsAvailableAndFreeSwap) {
  has(1000);
  EXPECT_EQ(room().bytes, 1000 * 1024.0);
  EXPECT_EQ(room().limit, "MemAvailable");
  has(1000, 24);
  EXPECT_EQ(room().bytes, 1024 * 1024.0);
  EXPECT_EQ(room().limit, "MemAvailable and SwapFree");
}

TEST_F(Machine, AGroupOfVersion2AndThoseAboveIt) {
  has(1 << 20);
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("sys/fs/cgroup/outer/inner/memory.current", "5000\n");
  EXPECT_EQ(room().limit, "MemAvailable");
  write("sys/fs/cgroup/outer/memory.max", "100000\n");
  write("sys/fs/cgroup/outer/memory.current", "60000\n");
  EXPECT_EQ(room().bytes, 40000);
  EXPECT_EQ(room().limit, "the control group's memory.max");
  write("sys/fs/cgroup/outer/memory.stat",
        "anon 30000\ninactive_file 20000\nactive_file 5000\nslab_reclaimable 1000\n");
  EXPECT_EQ(room().bytes, 66000);
  write("sys/fs/cgroup/outer/inner/memory.max", "7000\n");
  EXPECT_EQ(room().bytes, 2000);
  write("sys/fs/cgroup/outer/inner/memory.current", "9000\n");
  EXPECT_EQ(room().bytes, 0);  // never less than nothing
}

TEST_F(Machine, AGroupOfVersion1WhosePathIsNotMounted) {
  has(1 << 20);
  write("proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/docker/abc\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(room().limit, "MemAvailable");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "800000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "300000\n");
  write("sys/fs/cgroup/memory/memory.stat", "cache 1\ntotal_inactive_file 50000\ntotal_active_file 20000\n");
  EXPECT_EQ(room().bytes, 570000);
  EXPECT_EQ(room().limit, "the control group's memory.limit_in_bytes");
}

TEST(MemoryRoom, OfThisMachine) {
  double const bytes = machine_memory_room().bytes;
  EXPECT_GT(bytes, 1 << 20);
  EXPECT_TRUE(std::isfinite(bytes));
}

TEST(MemoryRoom, OfThisProcess) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_DATA, &before), 0);
  constexpr double room = 1e15;  // no process here has so much
  rlimit const limit{static_cast<rlim_t>(room), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &limit), 0);
  MemoryRoom const found = process_memory_room();
  setrlimit(RLIMIT_DATA, &before);
  EXPECT_LT(found.bytes, room);
  EXPECT_GT(found.bytes, 0);
}

}  // namespace
}  // namespace hostless
