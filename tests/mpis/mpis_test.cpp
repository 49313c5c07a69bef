// Programs for MPIS_..., the same sources linked with each of its libraries.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "host_ranks.hpp"

namespace hostless {
namespace {

constexpr std::array<char const*, 7> programs = {"ring",       "ready_send", "halo", "halo_allreduce",
                                                 "two_queues", "barrier",    "in_c"};

std::string path_of(std::string const& program, std::string const& library) {
  auto const folder = std::filesystem::path(test::own_path()).parent_path();
  return (folder / ("mpis_" + program + "_" + library)).string();
}
test::Printed run_threads(std::string const& program, std::string const& ranks,
                          std::string const& library = "threads", std::string const& variables = "") {
  test::Printed printed;
  std::string const command =
      variables + "HOSTLESS_MPIS_RANKS=" + ranks + " " + path_of(program, library) + " 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  for (std::array<char, 256> line; std::fgets(line.data(), static_cast<int>(line.size()), pipe) != nullptr;)
    printed.output += line.data();
  printed.status = pclose(pipe);
  return printed;
}

class MpisPrograms : public testing::TestWithParam<test::Ranks> {
 protected:
  static std::string library() { return std::get<0>(GetParam()); }
  static int ranks() { return std::get<1>(GetParam()); }
  static test::Printed run(std::string const& program) {
    if (library() == "threads") return run_threads(program, std::to_string(ranks()));
    return test::run_as_ranks(test::tested_transport(library()), ranks(), {path_of(program, library())});
  }
};

TEST_P(MpisPrograms, Keep) {
  if (library() != "threads") test::need(test::tested_transport(library()));
  if (IsSkipped()) return;
  for (char const* program : programs) {
    test::Printed const printed = run(program);
    EXPECT_EQ(printed.status, 0) << program << ": " << printed.output;
    EXPECT_EQ(printed.kept(program), ranks()) << program << ": " << printed.output;
  }
}

// The work of their queues is done by streams of one GPU, and of two.
TEST(MpisAlone, Of_peer_ProgramsKeep) {
  for (char const* program :
       {"ring", "ready_send", "halo", "halo_allreduce", "two_queues", "barrier", "own_stream"})
    for (char const* ranks : {"2", "4"})
      for (char const* gpus : {"1", "2"}) {
        test::Printed const printed =
            run_threads(program, ranks, "peer", "HOSTLESS_MPIS_GPUS=" + std::string(gpus) + " ");
        EXPECT_EQ(printed.status, 0) << program << ": " << printed.output;
        EXPECT_EQ(printed.kept(program), std::stoi(ranks)) << program << ": " << printed.output;
      }
}

TEST(MpisAlone, Of_peer_GpusThatAreNone) {
  for (auto const& [gpus, says] : {std::pair<std::string, std::string>{"0", "HOSTLESS_MPIS_GPUS='0'"},
                                   {"two", "HOSTLESS_MPIS_GPUS='two'"},
                                   {"5", "no such GPU"}}) {
    test::Printed const printed = run_threads("ring", "5", "peer", "HOSTLESS_MPIS_GPUS=" + gpus + " ");
    EXPECT_NE(printed.status, 0) << gpus;
    EXPECT_NE(printed.output.find(says), std::string::npos) << printed.output;
  }
}

TEST(MpisAlone, Of_threads_FinalizeLeaves) {
  test::Printed const printed = run_threads("finalize", "3");
  EXPECT_EQ(printed.status, 0) << printed.output;
  EXPECT_EQ(printed.kept("finalize"), 3) << printed.output;
}

// None of them is a number of ranks.
TEST(MpisAlone, Of_threads_NumbersOfRanks) {
  for (std::string const ranks : {"0", "-2", "two", "2.5", "99999999999999999999"}) {
    test::Printed const printed = run_threads("ring", ranks);
    EXPECT_NE(printed.status, 0) << ranks;
    EXPECT_NE(printed.output.find("HOSTLESS_MPIS_RANKS='" + ranks + "'"), std::string::npos)
        << printed.output;
  }
}

// The program of docs/howto/from-gpu-aware-mpi.md, beside plain MPI.
class MpisPage : public MpisPrograms {};

TEST_P(MpisPage, Keeps) {
  test::need(test::tested_transport(library()));
  if (IsSkipped()) return;
  test::Printed const printed = run("jacobi");
  EXPECT_EQ(printed.status, 0) << printed.output;
  EXPECT_EQ(printed.kept("jacobi"), ranks()) << printed.output;
}

// MPI_Init of MPI itself.
TEST_P(MpisPage, MayStartMpiByThemselves) {
  test::need(test::tested_transport(library()));
  if (IsSkipped()) return;
  test::Printed const printed = run("plain_init");
  EXPECT_EQ(printed.status, 0) << printed.output;
  EXPECT_EQ(printed.kept("plain_init"), ranks()) << printed.output;
}

// Datatypes, freed communicators, intercommunicators.
TEST_P(MpisPage, KnowWhatOnlyAnMpiHas) {
  test::need(test::tested_transport(library()));
  if (IsSkipped()) return;
  test::Printed const printed = run("of_mpi");
  EXPECT_EQ(printed.status, 0) << printed.output;
  EXPECT_EQ(printed.kept("of_mpi"), ranks()) << printed.output;
}

INSTANTIATE_TEST_SUITE_P(With, MpisPage, testing::ValuesIn(test::with_ranks({"openmpi", "mpich"}, {1, 3})),
                         [](auto const& one) { return test::name_of(one.param); });
INSTANTIATE_TEST_SUITE_P(With, MpisPrograms,
                         testing::ValuesIn(test::with_ranks({"threads", "openmpi", "mpich"}, {2, 4})),
                         [](auto const& one) { return test::name_of(one.param); });

}  // namespace
}  // namespace hostless

int main(int count, char** words) {
  return hostless::test::main_of_ranks(count, words, [](auto const&, auto const&) { return 2; });
}
