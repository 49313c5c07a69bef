#include "host_ranks.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "hostless/base/deadline.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/transport/mpi.hpp"

namespace hostless {
std::vector<HostTransport> const& transports_of_tests();  // both written by cmake/Transports.cmake
std::vector<GpuTransportFacts> const& gpu_transports_of_tests();
}  // namespace hostless

namespace hostless::test {

namespace {
[[maybe_unused]] bool const are_added = (add_gpu_transports(gpu_transports_of_tests()), true);
}  // namespace

std::vector<HostTransport> const& tested_transports() {
  static auto const all = [] {
    std::vector<HostTransport> both = host_transports();
    both.insert(both.end(), transports_of_tests().begin(), transports_of_tests().end());
    return both;
  }();
  return all;
}

HostTransport const& tested_transport(std::string const& name) {
  for (HostTransport const& one : tested_transports())
    if (one.name == name) return one;
  throw std::runtime_error("no transport is called '" + name + "'");
}

namespace {

std::vector<std::string> names(bool on_threads) {
  std::vector<std::string> all;
  for (HostTransport const& one : tested_transports())
    if ((one.run != nullptr) == on_threads) all.push_back(one.name);
  return all;
}

}  // namespace

std::vector<std::string> names_with_threads() { return names(true); }
std::vector<std::string> names_with_processes() { return names(false); }

std::vector<Ranks> with_ranks(std::vector<std::string> const& names, std::vector<int> const& ranks) {
  std::vector<Ranks> all;
  for (std::string const& name : names)
    for (int const count : ranks) all.emplace_back(name, count);
  return all;
}

std::string name_of(Ranks const& ranks) {
  return std::get<0>(ranks) + "_" + std::to_string(std::get<1>(ranks));
}

void need(HostTransport const& transport) {
  if (HOSTLESS_THREAD_SANITIZER && transport.library_of_others)
    GTEST_SKIP() << "MPI libraries are not built for the thread sanitizer";
  std::string const missing = transport.missing == nullptr ? "" : transport.missing();
  if (!missing.empty()) GTEST_SKIP() << missing;
  // Containers often forbid one process to read another's memory; binding fights with tests that run beside.
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
  // What such a library keeps until the process ends is not ours to free. Options that the caller has set
  // stay.
  if (transport.library_of_others) setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
}

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

namespace {

// A library that does not find its launcher makes a world of one rank of each process, where nothing could be wrong.
constexpr char const* started = "STARTED_RANKS_OF_TEST";
// A file in which each rank that is about to leave leaves a byte.
constexpr char const* leaving = "LEAVING_RANKS_OF_TEST";
int start_so_many(HostTransport const& transport, int ranks, std::vector<std::string> const& command) {
  auto const left = std::filesystem::temp_directory_path() / ("hostless_leaving_" + std::to_string(getpid()));
  std::filesystem::remove(left);
  setenv(started, std::to_string(ranks).c_str(), 1);
  setenv(leaving, left.c_str(), 1);
  int const code = transport.start(ranks, command);
  std::filesystem::remove(left);
  return code;
}

}  // namespace

std::unique_ptr<Transport> open_with_all(HostTransport const& transport) {
  auto opened = transport.open();
  char const* const wanted = std::getenv(started);
  int const there = opened->group().size();
  if (wanted != nullptr && there != std::atoi(wanted))
    throw Error(ErrorCode::environment, "a world of " + std::to_string(there) + ", and " + wanted +
                                            " were started (the launcher was not found). Start them again.");
  return opened;
}

void leave_together(int code, int absent) {
  char const *const file = std::getenv(leaving), *const wanted = std::getenv(started);
  if (file != nullptr && wanted != nullptr) {
    std::ofstream(file, std::ios::app) << '.' << std::flush;
    auto const all = static_cast<std::uintmax_t>(std::atoi(wanted) - absent);
    std::error_code none;
    wait_for([&] { return std::filesystem::file_size(file, none) >= all && !none; }, [] { return false; },
             Deadline::after(60));
    // What they have printed is still on its way through the launcher.
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  leave_process(code);
}

int start_again(HostTransport const& transport, int ranks, std::vector<std::string> const& words) {
  std::vector<std::string> command{own_path(), "--as-rank", transport.name};
  command.insert(command.end(), words.begin(), words.end());
  return start_so_many(transport, ranks, command);
}

int Printed::kept(std::string const& name) const {
  int count = 0;
  std::string const line = "kept " + name + ";";  // mpiexec may put the ends of lines elsewhere
  for (auto at = output.find(line); at != output.npos; at = output.find(line, at + 1)) ++count;
  return count;
}

// In a process of its own, whose output can be read.
Printed run_as_ranks(HostTransport const& transport, int ranks, std::vector<std::string> const& command,
                     std::string const& variables) {
  std::string line =
      variables + "'" + own_path() + "' --launch " + transport.name + " " + std::to_string(ranks);
  for (std::string const& word : command) line += " '" + word + "'";
  Printed printed;
  auto const start = Clock::now();
  FILE* const pipe = popen((line + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return printed;
  char buffer[4096];
  while (std::size_t const got = std::fread(buffer, 1, sizeof buffer, pipe))
    printed.output.append(buffer, got);
  int const status = pclose(pipe);
  printed.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  printed.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return printed;
}

namespace {

int launch_ranks(std::vector<std::string> const& words) {
  try {
    std::vector<std::string> const command(words.begin() + 3, words.end());
    return start_so_many(tested_transport(words[1]), std::atoi(words[2].c_str()), command);
  } catch (Error const& e) {
    std::printf("%s\n", e.what());
    return e.exit_code();
  }
}

}  // namespace

int rank_that_looks(HostTransport const& transport, std::function<std::string(Transport&)> const& wrong) {
  try {
    auto const opened = open_with_all(transport);
    std::string const text = wrong(*opened);
    std::printf("%s", text.c_str());
    return text.empty() ? 0 : 1;
  } catch (std::exception const& e) {
    std::printf("%s: %s\n", transport.name.c_str(), e.what());
    leave_process(4);
  }
}

int main_of_ranks(int count, char** words,
                  int (*as_rank)(HostTransport const& transport, std::vector<std::string> const& words)) {
  std::vector<std::string> const all(words + 1, words + count);
  if (all.size() > 3 && all[0] == "--launch") return launch_ranks(all);
  if (all.size() > 1 && all[0] == "--as-rank")
    return as_rank(tested_transport(all[1]), {all.begin() + 2, all.end()});
  testing::InitGoogleTest(&count, words);
  int const code = RUN_ALL_TESTS();
  bool const nothing = testing::UnitTest::GetInstance()->test_to_run_count() == 0;
  if (nothing) std::printf("The filter leaves no test.\n");
  return nothing ? 1 : code;
}

}  // namespace hostless::test
