// Starts whose wait is forgotten, over MPI (mpi_forgotten_program.cpp).
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "host_ranks.hpp"

namespace hostless {
namespace {

class Forgotten : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { test::need(transport()); }
  static HostTransport const& transport() { return test::tested_transport(GetParam()); }
};

TEST_P(Forgotten, BuffersAreTheCallersOnceTheRequestHasGone) {
  constexpr int ranks = 2;
  auto const program =
      std::filesystem::path(test::own_path()).parent_path() / ("mpi_forgotten_" + transport().name);
  for (std::string const what : {"forgotten", "refused", "thrown", "begun", "send"})
    for (std::string const progress : {"calls", "thread"}) {
      test::Printed const printed =
          test::run_as_ranks(transport(), ranks, {program.string(), what},
                             "HOSTLESS_DEADLINE_SCALE=10 HOSTLESS_QUEUE_PROGRESS=" + progress + " ");
      EXPECT_EQ(printed.status, 0) << what << ": " << printed.output;
      EXPECT_EQ(printed.kept("forgotten"), ranks) << what << ": " << printed.output;
      EXPECT_EQ(printed.output.find("hostless: "), std::string::npos) << what << ": " << printed.output;
    }
}

INSTANTIATE_TEST_SUITE_P(Mpi, Forgotten, testing::Values("openmpi", "mpich"),
                         [](auto const& one) { return one.param; });

}  // namespace
}  // namespace hostless

int main(int count, char** words) {
  return hostless::test::main_of_ranks(count, words, [](auto const&, auto const&) { return 2; });
}
