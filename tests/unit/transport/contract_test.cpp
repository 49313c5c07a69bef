// The contract over every transport and number of ranks. The same program is the ranks: started by a launcher
// as
//   transport_contract --as-rank <transport> <case or "all">
// it runs the cases and prints one line for each that was kept; as
//   transport_contract --launch <ranks> <command>...
// it is a launcher itself.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "hostless/base/wait.hpp"
#include "hostless/transport/launcher.hpp"
#include "hostless/transport/mpi.hpp"
#include "mpi_ranks.hpp"
#include "transport_contract.hpp"

namespace hostless {
namespace {

using contract::Case;

constexpr bool thread_sanitizer = HOSTLESS_THREAD_SANITIZER;

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

struct Outcome {
  int status = -1;
  std::string output;
  double seconds = 0;
  int kept(std::string const& name) const {
    int count = 0;
    std::string const line = "kept " + name + ";";  // mpiexec may put the ends of lines elsewhere
    for (auto at = output.find(line); at != output.npos; at = output.find(line, at + 1)) ++count;
    return count;
  }
};

Outcome run(std::vector<std::string> const& words, std::string line) {
  for (std::string const& w : words) line += "'" + w + "' ";
  Outcome outcome;
  auto const start = Clock::now();
  FILE* const pipe = popen((line + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  while (std::size_t const got = std::fread(buffer, 1, sizeof buffer, pipe))
    outcome.output.append(buffer, got);
  int const status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return outcome;
}

// ---- what a rank does
// ------------------------------------------------------------------------------------------

void tell(std::string const& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Runs one case, or all that leave the world whole, on this rank.
void run_cases(Transport& transport, std::string const& wanted) {
  for (Case const& c : contract::cases()) {
    bool const chosen = wanted == "all" ? !c.breaks_world : wanted == c.name;
    if (!chosen || transport.group().size() < c.least_ranks) continue;
    try {
      c.run(transport);
    } catch (Error const& e) {
      if (c.breaks_world && std::string(e.what()) == "as it should be")
        tell(std::string("kept ") + c.name + ";");
      throw;
    } catch (std::exception const& e) {
      throw std::runtime_error(std::string(c.name) + ": " + e.what());
    }
    tell(std::string("kept ") + c.name + ";");
  }
}

// The last rank is killed in the middle of an exchange.
void run_killed(Transport& transport) {
  Group& group = transport.group();
  std::byte byte{};
  int const last = group.size() - 1;
  Binding binding;
  for (int r = 0; r < last && group.rank() == last; ++r) binding.out.push_back({r, r, &byte, 1});
  if (group.rank() != last) binding.in.push_back({group.rank(), last, &byte, 1});
  auto const endpoint = transport.bind(binding);
  group.barrier();
  if (group.rank() == last) std::raise(SIGKILL);
  endpoint->receive(0, 1);
  auto const waited = wait_for([&] { return endpoint->received(0); }, [&] { return endpoint->peer_left(); },
                               Deadline::after(10));
  if (waited != Waited::stopped) throw std::runtime_error("a killed rank was not noticed by the endpoint");
  try {
    group.barrier();
  } catch (Error const& e) {
    if (e.code() == ErrorCode::peer_lost) tell("kept killed;");
    throw;
  }
  throw std::runtime_error("a killed rank was not noticed by the group");
}

std::unique_ptr<Transport> open_transport(std::string const& transport) {
  if (transport == "processes") return open_processes_transport();
  return open_mpi_transport(transport == "openmpi" ? MpiVendor::openmpi : MpiVendor::mpich);
}

// A launcher may end all ranks as soon as one is gone; here the others are to tell first what they saw.
[[noreturn]] void leave_late(int code, char const* why) {
  tell(why);
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  leave_process(code);
}

int as_rank(std::string const& transport, std::string const& wanted) {
  try {
    auto const opened = open_transport(transport);
    if (wanted == "killed") run_killed(*opened);
    run_cases(*opened, wanted);
  } catch (Error const& e) {
    leave_late(e.exit_code(), e.what());
  } catch (std::exception const& e) {
    leave_late(1, e.what());
  }
  if (wanted == "silent") leave_late(4, "as it should be");
  return 0;
}

int as_launcher(int count, char** words) {
  Launch what;
  what.ranks = std::atoi(words[0]);
  what.command.assign(words + 1, words + count);
  try {
    return launch(what);
  } catch (Error const& e) {
    tell(e.what());
    return e.exit_code();
  }
}

// ---- ranks as threads
// ------------------------------------------------------------------------------------------

class ThreadsContract : public testing::TestWithParam<std::tuple<int, Case>> {};

TEST_P(ThreadsContract, Kept) {
  auto const& [ranks, c] = GetParam();
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

std::vector<std::tuple<int, Case>> threads_and_cases() {
  std::vector<std::tuple<int, Case>> all;
  for (int ranks : {1, 2, 3, 4, 7})
    for (Case const& c : contract::cases())
      if (ranks >= c.least_ranks) all.emplace_back(ranks, c);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadsContract, testing::ValuesIn(threads_and_cases()), case_name);

TEST(Threads, ARankThatEndsEarlyEndsTheWaitOfTheOthers) {
  auto const start = Clock::now();
  auto const body = [](Group& group) {
    if (group.rank() != 1) group.barrier();
  };
  try {
    run_on_threads(3, body);
    ADD_FAILURE() << "no error";
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), ErrorCode::peer_lost) << e.what();
  }
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(30));
}

// The silent rank stays until the other has given up, so that nothing but the deadline can end the wait.
TEST(Threads, ADeadlineAloneEndsAWait) {
  setenv("HOSTLESS_DEADLINE_SCALE", "0.0005", 1);
  std::atomic<bool> over{false};
  std::string text;
  EXPECT_THROW(run_on_threads(2,
                              [&](Group& group) {
                                if (group.rank() == 1) {
                                  wait_for([&] { return over.load(); }, [] { return false; },
                                           Deadline::after(60));
                                  return;
                                }
                                try {
                                  group.barrier();
                                } catch (Error const& e) {
                                  text = e.what();
                                  over = true;
                                  throw;
                                }
                              }),
               Error);
  unsetenv("HOSTLESS_DEADLINE_SCALE");
  EXPECT_NE(text.find("did not arrive in time"), std::string::npos) << text;
}

TEST(Threads, NeedARank) {
  EXPECT_THROW(run_on_threads(0, [](Group&) {}), Error);
}

TEST(Threads, BlocksOfDifferentSizesAreAnError) {
  EXPECT_THROW(run_on_threads(2,
                              [](Group& group) {
                                std::vector<std::byte> mine(static_cast<std::size_t>(1 + group.rank()));
                                std::vector<std::byte> all(2 * mine.size());
                                group.all_gather_blocks(mine, all);
                              }),
               Error);
}

// ---- ranks as processes
// ----------------------------------------------------------------------------------------

using Started = std::tuple<std::string, int>;  // transport, ranks

class RanksContract : public testing::TestWithParam<Started> {
 protected:
  void SetUp() override {
    if (transport() == "processes") return;
    if (thread_sanitizer) GTEST_SKIP() << "MPI libraries are not built for the thread sanitizer";
    test::need_mpi(vendor());
    if (!IsSkipped()) test::overlook_leaks_of_mpi();
  }
  static std::string transport() { return std::get<0>(GetParam()); }
  static int ranks() { return std::get<1>(GetParam()); }
  static MpiVendor vendor() { return transport() == "openmpi" ? MpiVendor::openmpi : MpiVendor::mpich; }
  static Outcome run_ranks(std::vector<std::string> const& command, std::string const& environment = "") {
    if (transport() != "processes") return run(mpirun_command(vendor(), ranks(), command), environment);
    std::vector<std::string> words{own_path(), "--launch", std::to_string(ranks())};
    words.insert(words.end(), command.begin(), command.end());
    return run(words, environment);
  }
  static Outcome run_case(std::string const& wanted, std::string const& environment = "") {
    return run_ranks({own_path(), "--as-rank", transport(), wanted}, environment);
  }
};

// One start for all cases: it takes longer than they do.
TEST_P(RanksContract, Kept) {
  Outcome const outcome = run_case("all");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  for (Case const& c : contract::cases()) {
    if (c.breaks_world || ranks() < c.least_ranks) continue;
    EXPECT_EQ(outcome.kept(c.name), ranks()) << c.name << "\n" << outcome.output;
  }
}

// A rank is lost: afterwards the ranks are out of step, so each of these starts its own.
class RanksLoss : public RanksContract {};

TEST_P(RanksLoss, SilentRankEndsAtTheDeadline) {
  Outcome const outcome = run_case("silent", "HOSTLESS_DEADLINE_SCALE=0.0005 ");
  EXPECT_NE(outcome.status, 0);
  EXPECT_GE(outcome.kept("silent"), ranks() - 1) << outcome.output;
}

TEST_P(RanksLoss, RankThatFailsAloneTellsTheOthers) {
  Outcome const outcome = run_case("alone");
  EXPECT_NE(outcome.status, 0);
  EXPECT_EQ(outcome.kept("alone"), ranks() - 1) << outcome.output;
  if (transport() == "processes") {
    EXPECT_EQ(outcome.status, 3) << "the code of the cause, not of those that lost it";
  }
}

// Under an MPI it is usually mpirun that ends the others, before they can say anything.
TEST_P(RanksLoss, KilledRankEndsAllInTime) {
  Outcome const outcome = run_case("killed");
  EXPECT_NE(outcome.status, 0);
  EXPECT_LT(outcome.seconds, 50) << outcome.output;
  if (transport() == "processes") {
    EXPECT_EQ(outcome.status, 4);
    EXPECT_EQ(outcome.kept("killed"), ranks() - 1) << outcome.output;
  }
}

// A program that calls MPI itself lends a communicator of its own (mpi_user_program.cpp).
class LentCommunicator : public RanksContract {};

TEST_P(LentCommunicator, ProgramThatUsesMpiItself) {
  auto const program = std::filesystem::path(own_path()).parent_path() / ("mpi_user_" + transport());
  Outcome const outcome = run_ranks({program.string()});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(outcome.kept("lent"), ranks()) << outcome.output;
}

// Ranks that come late write into what others have given up (mpi_late_program.cpp).
class GivenUp : public RanksContract {};

TEST_P(GivenUp, MemoryIsKeptWhileMpiMayWriteToIt) {
  auto const program = std::filesystem::path(own_path()).parent_path() / ("mpi_late_" + transport());
  for (char const* late_with : {"exchange", "message"}) {
    Outcome const outcome = run_ranks({program.string(), late_with});
    EXPECT_EQ(outcome.status, 0) << late_with << ": " << outcome.output;
    EXPECT_EQ(outcome.kept("late"), 1) << late_with << ": " << outcome.output;
  }
}

std::string ranks_name(testing::TestParamInfo<Started> const& one) {
  return std::get<0>(one.param) + "_" + std::to_string(std::get<1>(one.param));
}

auto const mpi = testing::Values("openmpi", "mpich");
auto const processes = testing::Values("processes");
INSTANTIATE_TEST_SUITE_P(Mpi, RanksContract, testing::Combine(mpi, testing::Values(1, 2, 4)), ranks_name);
INSTANTIATE_TEST_SUITE_P(Mpi, RanksLoss, testing::Combine(mpi, testing::Values(2, 4)), ranks_name);
INSTANTIATE_TEST_SUITE_P(Mpi, GivenUp, testing::Combine(mpi, testing::Values(2)), ranks_name);
INSTANTIATE_TEST_SUITE_P(Mpi, LentCommunicator, testing::Combine(mpi, testing::Values(1, 2, 4)), ranks_name);
INSTANTIATE_TEST_SUITE_P(Processes, RanksContract,
                         testing::Combine(processes, testing::Values(1, 2, 3, 4, 7)), ranks_name);
INSTANTIATE_TEST_SUITE_P(Processes, RanksLoss, testing::Combine(processes, testing::Values(2, 7)),
                         ranks_name);

}  // namespace
}  // namespace hostless

int main(int count, char** words) {
  std::string const role = count > 1 ? words[1] : "";
  if (role == "--as-rank" && count == 4) return hostless::as_rank(words[2], words[3]);
  if (role == "--launch" && count > 3) return hostless::as_launcher(count - 2, words + 2);
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
