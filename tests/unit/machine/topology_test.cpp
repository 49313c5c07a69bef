#include "hostless/machine/topology.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "hostless/base/error.hpp"
#include "hostless/machine/nodes.hpp"

namespace hostless {
namespace {

TEST(Topology, AgreesWithTheOperatingSystem) {
  Topology const t = find_topology();
  EXPECT_GE(t.hardware_threads, t.cores);
  EXPECT_GE(t.cores, t.sockets);
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  EXPECT_LE(t.usable_threads, CPU_COUNT(&mask));
  EXPECT_GE(t.usable_threads, 1);
  EXPECT_FALSE(t.host.empty());
}

// Threads of one process share its machine.
TEST(Nodes, RanksOfOneHostShareANode) {
  run_on_threads(3, [](Group& group) {
    NodeMap const map = find_machines(group);
    EXPECT_EQ(map.node, (std::vector<int>{0, 0, 0}));
    EXPECT_EQ(map.socket, (std::vector<int>{0, 0, 0}));
    EXPECT_EQ(map.device, (std::vector<int>{-1, -1, -1}));
  });
}

TEST(Topology, MemoryIsWhatTheKernelSays) {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  double kibibytes = 0;
  ASSERT_TRUE(meminfo >> key >> kibibytes);
  ASSERT_EQ(key, "MemTotal:");
  EXPECT_NEAR(static_cast<double>(find_topology().memory_bytes), kibibytes * 1024, 0.01 * kibibytes * 1024);
}

TEST(Topology, UsableThreadsFollowTheAffinityMask) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  int const usable = find_topology().usable_threads;
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(usable, 1);
}

TEST(Nodes, AThreadOnOneProcessorIsOnOneSocket) {
  int const sockets = find_topology().sockets;
  EXPECT_LT(socket_of_thread(), sockets);
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  int const found = socket_of_thread();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(found, 0);
  EXPECT_LT(found, sockets);
}

TEST(Topology, CachesGrowWithTheirLevel) {
  Topology const t = find_topology();
  for (std::size_t k = 1; k < t.caches.size(); ++k) {
    EXPECT_GT(t.caches[k].level, t.caches[k - 1].level);
    EXPECT_GE(t.caches[k].bytes, t.caches[k - 1].bytes);
  }
}

// hwloc takes a described machine from the environment, so a machine that is not this one can be checked
// exactly.
TEST(Topology, OfADescribedMachine) {
  ASSERT_EQ(setenv("HWLOC_SYNTHETIC", "pack:2 l3:2(size=8388608) core:4 l2:1(size=262144) pu:2", 1), 0);
  Topology const t = find_topology();
  ASSERT_EQ(unsetenv("HWLOC_SYNTHETIC"), 0);
  EXPECT_EQ(t.sockets, 2);
  EXPECT_EQ(t.cores, 16);
  EXPECT_EQ(t.hardware_threads, 32);
  EXPECT_EQ(t.last_level_bytes(), 4 * 8388608);
  ASSERT_EQ(t.caches.size(), 2u);
  EXPECT_EQ(t.caches[0].level, 2);
  EXPECT_EQ(t.caches[0].count, 16);
  EXPECT_EQ(t.caches[1].bytes, 8388608);
}

TEST(Topology, WhereNothingCanBeDiscoveredIsAnError) {
  ASSERT_EQ(setenv("HWLOC_COMPONENTS", "stop", 1), 0);  // hwloc may use none of its ways to look
  auto const look = [] {
    try {
      find_topology();
      return std::string("no error");
    } catch (Error const& e) {
      return (e.code() == ErrorCode::environment ? "environment: " : "another code: ") +
             std::string(e.what());
    }
  };
  std::string const said = look();
  ASSERT_EQ(unsetenv("HWLOC_COMPONENTS"), 0);
  EXPECT_EQ(said.find("environment: hwloc cannot read the topology"), 0u) << said;
}

TEST(Topology, WithoutCachesTheLastLevelIsEmpty) { EXPECT_EQ(Topology{}.last_level_bytes(), 0); }

}  // namespace
}  // namespace hostless
