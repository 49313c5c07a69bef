// Programs for MPIS_..., the same sources linked with each of its libraries.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "host_ranks.hpp"

namespace hostless {
namespace {

constexpr std::array<char const*, 6> programs = {"ring",           "ready_send", "halo",
                                                 "halo_allreduce", "two_queues", "barrier"};

class MpisPrograms : public testing::TestWithParam<test::Ranks> {
 protected:
  static std::string library() { return std::get<0>(GetParam()); }
  static int ranks() { return std::get<1>(GetParam()); }
  static test::Printed run(std::string const& program) {
    auto const folder = std::filesystem::path(test::own_path()).parent_path();
    std::string const path = (folder / ("mpis_" + program + "_" + library())).string();
    if (library() != "threads") return test::run_as_ranks(test::tested_transport(library()), ranks(), {path});
    test::Printed printed;
    std::string const command = "HOSTLESS_MPIS_RANKS=" + std::to_string(ranks()) + " " + path + " 2>&1";
    FILE* const pipe = popen(command.c_str(), "r");
    for (std::array<char, 256> line; std::fgets(line.data(), static_cast<int>(line.size()), pipe) != nullptr;)
      printed.output += line.data();
    printed.status = pclose(pipe);
    return printed;
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

// The program of docs/howto/from-gpu-aware-mpi.md, beside plain MPI.
class MpisPage : public MpisPrograms {};

TEST_P(MpisPage, Keeps) {
  test::need(test::tested_transport(library()));
  if (IsSkipped()) return;
  test::Printed const printed = run("jacobi");
  EXPECT_EQ(printed.status, 0) << printed.output;
  EXPECT_EQ(printed.kept("jacobi"), ranks()) << printed.output;
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
