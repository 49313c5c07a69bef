// Programs that use MPI themselves, beside hostless.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "host_ranks.hpp"

namespace hostless {
namespace {

class MpiPrograms : public testing::TestWithParam<test::Ranks> {
 protected:
  void SetUp() override { test::need(transport()); }
  static HostTransport const& transport() { return test::tested_transport(std::get<0>(GetParam())); }
  static int ranks() { return std::get<1>(GetParam()); }
  /// Of this folder.
  static test::Printed run(std::string const& program, std::vector<std::string> command = {}) {
    auto const folder = std::filesystem::path(test::own_path()).parent_path();
    command.insert(command.begin(), (folder / (program + "_" + transport().name)).string());
    return test::run_as_ranks(transport(), ranks(), command);
  }
};

// A program that calls MPI itself lends a communicator of its own (mpi_user_program.cpp).
class LentCommunicator : public MpiPrograms {};

TEST_P(LentCommunicator, ProgramThatUsesMpiItself) {
  test::Printed const printed = run("mpi_user");
  EXPECT_EQ(printed.status, 0) << printed.output;
  EXPECT_EQ(printed.kept("lent"), ranks()) << printed.output;
}

// Ranks that come late write into what others have given up (mpi_late_program.cpp).
class GivenUp : public MpiPrograms {};

TEST_P(GivenUp, MemoryIsKeptWhileMpiMayWriteToIt) {
  for (char const* late_with : {"exchange", "message"}) {
    test::Printed const printed = run("mpi_late", {late_with});
    EXPECT_EQ(printed.status, 0) << late_with << ": " << printed.output;
    EXPECT_EQ(printed.kept("late"), 1) << late_with << ": " << printed.output;
  }
}

// A rank without memory for what it is sent lets the others go (mpi_memory_program.cpp).
class WithoutMemory : public MpiPrograms {};

TEST_P(WithoutMemory, IsSaidByItsRankAndLetsTheOtherGo) {
  test::Printed const printed = run("mpi_memory");
  EXPECT_EQ(printed.status, 0) << printed.output;
  EXPECT_EQ(printed.kept("memory"), ranks()) << printed.output;
}

std::vector<std::string> const both{"openmpi", "mpich"};
auto const named = [](auto const& one) { return test::name_of(one.param); };
INSTANTIATE_TEST_SUITE_P(Mpi, LentCommunicator, testing::ValuesIn(test::with_ranks(both, {1, 2, 4})), named);
INSTANTIATE_TEST_SUITE_P(Mpi, GivenUp, testing::ValuesIn(test::with_ranks(both, {2})), named);
INSTANTIATE_TEST_SUITE_P(Mpi, WithoutMemory, testing::ValuesIn(test::with_ranks(both, {2})), named);

}  // namespace
}  // namespace hostless

int main(int count, char** words) {
  return hostless::test::main_of_ranks(count, words, [](auto const&, auto const&) { return 2; });
}
