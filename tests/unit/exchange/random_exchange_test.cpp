// Exchanges without a solver by plans made up at random: all routes, both directions, several fields,
// compared byte for byte with what the numbers of items say. Ranks that are processes are this program again,
// started by mpirun or by the launcher as
//   exchange_random --as-rank <transport> <plans>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "hostless/transport/launcher.hpp"
#include "hostless/transport/mpi.hpp"
#include "mpi_ranks.hpp"
#include "random_plans.hpp"

namespace hostless {
namespace {

constexpr int ranks = 3;
constexpr int plans_on_threads = HOSTLESS_THREAD_SANITIZER ? 100 : 1000;
constexpr int plans_on_processes = 1000;

/// All the plans; what is wrong on this rank.
std::string try_plans(Transport& transport, int plans) {
  std::string text;
  for (int k = 0; k < plans && text.size() < 2000; ++k) {
    text += testing::try_plan(transport, static_cast<unsigned>(k));
    if (transport.group().any(!text.empty())) break;
  }
  return text;
}

TEST(RandomExchange, Threads) {
  std::mutex guard;
  std::string text;
  run_with_threads_transport(ranks, [&](Transport& transport) {
    std::string const mine = try_plans(transport, plans_on_threads);
    std::lock_guard const lock(guard);
    text += mine;
  });
  EXPECT_EQ(text, "");
}

TEST(RandomExchange, OneRankAndMany) {
  for (int count : {1, 2, 7}) {
    std::mutex guard;
    std::string text;
    run_with_threads_transport(count, [&](Transport& transport) {
      std::string const mine = try_plans(transport, 60);
      std::lock_guard const lock(guard);
      text += mine;
    });
    EXPECT_EQ(text, "") << count << " ranks";
  }
}

// The oracle sees what is wrong: one byte of one ghost that came from elsewhere.
TEST(RandomExchange, AWrongPlanIsSeen) {
  std::atomic<int> seen{0};
  run_with_threads_transport(ranks, [&](Transport& transport) {
    for (unsigned number = 0; number < 20; ++number) {
      testing::World const world(ranks, number);
      auto patterns = world.patterns(transport.group());
      bool some = false;
      for (Pattern& pattern : patterns)  // two ghosts change places
        if (pattern.position.size() > 1) std::swap(pattern.position[0], pattern.position[1]), some = true;
      testing::Wrong wrong(world);
      testing::exchange_bytes(transport, world, patterns, wrong);
      bool const noticed = transport.group().any(!wrong.text().empty());
      EXPECT_EQ(noticed, some) << number;
      if (noticed && transport.group().rank() == 0) ++seen;
    }
  });
  EXPECT_GT(seen, 5);
}

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }
/// Every poll of MPICH's ranks that share cores costs a time slice.
int plans_over(MpiVendor vendor) { return vendor == MpiVendor::mpich ? 200 : 1000; }

TEST(RandomExchange, processes) {
  Launch start;
  start.ranks = ranks;
  start.command = {own_path(), "--as-rank", "processes", std::to_string(plans_on_processes)};
  EXPECT_EQ(launch(start), 0) << "the lines above say what differs";
}

class Mpi : public ::testing::TestWithParam<MpiVendor> {
 protected:
  void SetUp() override {
    if (HOSTLESS_THREAD_SANITIZER) GTEST_SKIP() << "MPI libraries are not built for the thread sanitizer";
    test::need_mpi(GetParam());
    if (!IsSkipped()) test::overlook_leaks_of_mpi();
  }
};
INSTANTIATE_TEST_SUITE_P(RandomExchange, Mpi, ::testing::Values(MpiVendor::openmpi, MpiVendor::mpich),
                         [](auto const& one) { return std::string(name(one.param)); });

TEST_P(Mpi, EveryByteComes) {
  std::string line;
  for (std::string const& word :
       mpirun_command(GetParam(), ranks,
                      {own_path(), "--as-rank", name(GetParam()), std::to_string(plans_over(GetParam()))}))
    line += "'" + word + "' ";
  EXPECT_EQ(std::system(line.c_str()), 0) << "the lines above say what differs";
}

std::unique_ptr<Transport> open_transport(std::string const& transport) {
  if (transport == "processes") return open_processes_transport();
  return open_mpi_transport(transport == "openmpi" ? MpiVendor::openmpi : MpiVendor::mpich);
}

int as_rank(std::string const& wanted, int plans) {
  try {
    auto const transport = open_transport(wanted);
    std::string const text = try_plans(*transport, plans);
    std::printf("%s", text.c_str());
    return text.empty() ? 0 : 1;
  } catch (std::exception const& e) {
    std::printf("%s: %s\n", wanted.c_str(), e.what());
    leave_process(4);
  }
}

}  // namespace
}  // namespace hostless

int main(int count, char** words) {
  if (count == 4 && std::string(words[1]) == "--as-rank")
    return hostless::as_rank(words[2], std::atoi(words[3]));
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
