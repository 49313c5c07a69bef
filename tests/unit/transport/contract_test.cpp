// The contract over every transport and number of ranks. The same program is the ranks: started by mpirun as
//   transport_contract --as-rank <transport> <case or "all">
// it runs the cases and prints one line for each that was kept.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "hostless/transport/mpi.hpp"
#include "transport_contract.hpp"

namespace hostless {
namespace {

using contract::Case;

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string quoted(std::vector<std::string> const& words) {
  std::string line;
  for (std::string const& w : words) line += "'" + w + "' ";
  return line;
}

struct Outcome {
  int status;
  std::string output;
  int kept(std::string const& name) const {
    int count = 0;
    std::string const line = "kept " + name + "\n";
    for (auto at = output.find(line); at != output.npos; at = output.find(line, at + 1)) ++count;
    return count;
  }
};

Outcome run(std::string const& line) {
  Outcome outcome{-1, ""};
  FILE* const pipe = popen((line + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  while (std::size_t const got = std::fread(buffer, 1, sizeof buffer, pipe))
    outcome.output.append(buffer, got);
  outcome.status = pclose(pipe);
  return outcome;
}

// Runs one case, or all that leave the world whole, on this rank.
void run_cases(Transport& transport, std::string const& wanted) {
  for (Case const& c : contract::cases()) {
    bool const chosen = wanted == "all" ? !c.breaks_world : wanted == c.name;
    if (!chosen || transport.group().size() < c.least_ranks) continue;
    try {
      c.run(transport);
    } catch (Error const& e) {
      bool const meant = c.breaks_world && std::string(e.what()) == "as it should be";
      if (meant) std::printf("kept %s\n", c.name);
      std::fflush(stdout);
      throw;
    } catch (std::exception const& e) {
      throw std::runtime_error(std::string(c.name) + ": " + e.what());
    }
    std::printf("kept %s\n", c.name);
    std::fflush(stdout);
  }
}

std::unique_ptr<Transport> open_transport(std::string const& transport) {
  if (transport == "openmpi") return open_mpi_transport(MpiVendor::openmpi);
  return open_mpi_transport(MpiVendor::mpich);
}

// A launcher may end all ranks as soon as one is gone; here the others are to tell first what they saw.
[[noreturn]] void leave_late(int code, char const* why) {
  std::printf("%s\n", why);
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  leave_process(code);
}

int as_rank(std::string const& transport, std::string const& wanted) {
  try {
    auto const opened = open_transport(transport);
    run_cases(*opened, wanted);
  } catch (Error const& e) {
    leave_late(e.exit_code(), e.what());
  } catch (std::exception const& e) {
    leave_late(1, e.what());
  }
  if (wanted == "silent") leave_late(4, "as it should be");
  return 0;
}

class ThreadsContract : public testing::TestWithParam<std::tuple<int, Case>> {};

TEST_P(ThreadsContract, Kept) {
  auto const& [ranks, c] = GetParam();
  if (ranks < c.least_ranks) GTEST_SKIP() << "needs " << c.least_ranks << " ranks";
  bool const silent = c.name == std::string("silent");
  if (silent) setenv("HOSTLESS_DEADLINE_SCALE", "0.0005", 1);
  try {
    run_with_threads_transport(ranks, c.run);
    EXPECT_STRNE(c.name, "alone");
  } catch (Error const& e) {
    // The rank that failed alone is the one to report, not those that noticed.
    EXPECT_STREQ(e.what(), c.breaks_world ? "on one rank only." : "no error");
  } catch (std::exception const& e) {
    ADD_FAILURE() << e.what();
  }
  if (silent) unsetenv("HOSTLESS_DEADLINE_SCALE");
}

std::string case_name(testing::TestParamInfo<std::tuple<int, Case>> const& one) {
  return std::string(std::get<1>(one.param).name) + "_" + std::to_string(std::get<0>(one.param));
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadsContract,
                         testing::Combine(testing::Values(1, 2, 3, 4, 7),
                                          testing::ValuesIn(contract::cases())),
                         case_name);

class MpiContract : public testing::TestWithParam<std::tuple<MpiVendor, int>> {
 protected:
  void SetUp() override {
    for (MpiPlugin const& plugin : mpi_plugins()) {
      if (plugin.vendor == vendor() && !plugin.problem.empty()) GTEST_SKIP() << plugin.problem;
    }
    try {
      mpirun_command(vendor(), 1, {"true"});
    } catch (Error const& e) {
      GTEST_SKIP() << e.what();
    }
    // Containers often forbid one process to read another's memory; binding fights with tests that run
    // beside.
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
  }
  static MpiVendor vendor() { return std::get<0>(GetParam()); }
  static int ranks() { return std::get<1>(GetParam()); }
  static Outcome run_ranks(std::string const& wanted, std::string const& environment = "") {
    return run(environment +
               quoted(mpirun_command(vendor(), ranks(), {own_path(), "--as-rank", name(vendor()), wanted})));
  }
};

// One mpirun for all cases: starting one takes longer than they do.
TEST_P(MpiContract, Kept) {
  Outcome const outcome = run_ranks("all");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  for (Case const& c : contract::cases()) {
    if (c.breaks_world || ranks() < c.least_ranks) continue;
    EXPECT_EQ(outcome.kept(c.name), ranks()) << c.name << "\n" << outcome.output;
  }
}

TEST_P(MpiContract, SilentRankEndsAtTheDeadline) {
  if (ranks() < 2) GTEST_SKIP() << "needs 2 ranks";
  Outcome const outcome = run_ranks("silent", "HOSTLESS_DEADLINE_SCALE=0.0005 ");
  EXPECT_NE(outcome.status, 0);
  EXPECT_GE(outcome.kept("silent"), ranks() - 1) << outcome.output;
}

TEST_P(MpiContract, RankThatFailsAloneTellsTheOthers) {
  if (ranks() < 2) GTEST_SKIP() << "needs 2 ranks";
  Outcome const outcome = run_ranks("alone");
  EXPECT_NE(outcome.status, 0);
  EXPECT_EQ(outcome.kept("alone"), ranks() - 1) << outcome.output;
}

std::string mpi_name(testing::TestParamInfo<std::tuple<MpiVendor, int>> const& one) {
  return std::string(name(std::get<0>(one.param))) + "_" + std::to_string(std::get<1>(one.param));
}

INSTANTIATE_TEST_SUITE_P(Mpi, MpiContract,
                         testing::Combine(testing::Values(MpiVendor::openmpi, MpiVendor::mpich),
                                          testing::Values(1, 2, 4)),
                         mpi_name);

}  // namespace
}  // namespace hostless

int main(int count, char** words) {
  if (count == 4 && std::string(words[1]) == "--as-rank") return hostless::as_rank(words[2], words[3]);
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
