// One program without and with the library to preload: it must receive the same bytes, and the report say what was
// carried.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "host_ranks.hpp"

namespace hostless {
namespace {

namespace fs = std::filesystem;

std::string text_in(fs::path const& file) {
  std::ifstream const from(file);
  std::ostringstream text;
  text << from.rdbuf();
  return text.str();
}

class Preload : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    test::need(test::tested_transport(GetParam()));  // sanitizers leave MPI out (tools/sanitize.sh)
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path file(std::string const& name) const { return folder_ / name; }
  static fs::path program() {
    return fs::path(test::own_path()).parent_path() / ("preload_forms_" + GetParam());
  }

  static std::string with_library() {
    return "LD_PRELOAD=" HOSTLESS_TEST_PLUGINS "/libhostless_preload_" + GetParam() + ".so";
  }
  /// As so many ranks; `words` of `env` are set for ranks alone.
  test::Printed run(int ranks, std::string const& to, std::vector<std::string> const& env,
                    bool changing) const {
    std::vector<std::string> command{"env"};
    command.insert(command.end(), env.begin(), env.end());
    command.push_back(program().string());
    command.push_back(file(to).string());
    if (changing) command.emplace_back("changing");
    return test::run_as_ranks(test::tested_transport(GetParam()), ranks, command);
  }
  void run_without(int ranks, bool changing) const {
    test::Printed const printed = run(ranks, "without", {}, changing);
    ASSERT_EQ(printed.kept("forms"), ranks) << printed.output;
  }
  /// Expects what `run_without` has printed and received, and returns the report.
  std::string run_with(int ranks, std::vector<std::string> env, bool changing) const {
    env.insert(env.begin(), {with_library(), "HOSTLESS_PRELOAD_REPORT=" + file("report").string()});
    test::Printed const printed = run(ranks, "with", env, changing);
    EXPECT_EQ(printed.status, 0) << printed.output;
    EXPECT_EQ(printed.kept("forms"), ranks) << printed.output;
    for (int rank = 0; rank < ranks; ++rank) {
      std::string const ending = "." + std::to_string(rank), expected = text_in(file("without" + ending));
      EXPECT_FALSE(expected.empty());
      EXPECT_EQ(text_in(file("with" + ending)), expected) << "rank " << rank;
    }
    return text_in(file("report"));
  }
  static void expect_in(std::string const& report, std::vector<std::string> const& lines) {
    for (std::string const& line : lines)
      EXPECT_NE(report.find(line), std::string::npos) << line << "\n" << report;
  }

 private:
  fs::path folder_ = fs::temp_directory_path() / ("hostless_preload_" + std::to_string(getpid()));
};

// Two nodes are declared, of two ranks and of one.
TEST_P(Preload, ReceivesTheSameBytes) {
  run_without(3, true);
  std::string const report =
      run_with(3,
               {"HOSTLESS_PRELOAD_ROUTE=three_step", "HOSTLESS_PRELOAD_RANKS_PER_NODE=2",
                "HOSTLESS_PRELOAD_COUNTS=checked"},
               true);
  // 5 calls of each size, of which 2 are MPI's: 2 sizes on each of 2 graphs, of which the second has edges twice, one on
  // the grid, one on the torus, whose second dimension has one rank and an edge twice, and one on the chain; 10 more of
  // items of whole addresses.
  expect_in(report, {"carried MPI_Neighbor_allgather by three_step: 31 calls",
                     "carried MPI_Neighbor_alltoall by three_step: 12 calls",
                     "carried MPI_Neighbor_allgatherv by three_step: ",
                     "carried MPI_Neighbor_alltoallv by three_step: ",
                     "handed on MPI_Neighbor_alltoallw: 2 calls (each block has a type of its own)",
                     "handed on MPI_Ineighbor_alltoall: 2 calls (its start may wait for nobody)",
                     "handed on MPI_Neighbor_allgather: 5 calls (a communicator of one rank)", "set-ups, "});
  // By itself: 4 edges of the graph cross, in both directions between the two nodes, from 3 ranks.
  expect_in(run_with(3, {"HOSTLESS_PRELOAD_RANKS_PER_NODE=2"}, true),
            {"carried MPI_Neighbor_alltoall by three_step: 6 calls",
             "(counts may change (HOSTLESS_PRELOAD_COUNTS))",
             "handed on MPI_Neighbor_allgather: 31 calls (no route crosses fewer borders of nodes)"});
}

TEST_P(Preload, DoesWhatItsEnvironmentSays) {
  run_without(2, false);
  expect_in(run_with(2, {}, false), {": 0 calls carried", "calls (all ranks are on one node)"});
  std::vector<std::string> const fixed{"HOSTLESS_PRELOAD_ROUTE=direct", "HOSTLESS_PRELOAD_COUNTS=fixed",
                                       "HOSTLESS_PRELOAD_AFTER=1"};
  expect_in(run_with(2, fixed, false),
            {"carried MPI_Neighbor_allgather by direct: 38 calls",
             "carried MPI_Neighbor_alltoallv by direct: ", "carried MPI_Neighbor_allgatherv by direct: "});
  expect_in(run_with(2, {"HOSTLESS_PRELOAD_ROUT=direct"}, false),
            {"HOSTLESS_PRELOAD_ROUT is no variable of hostless (it changes nothing). Did you mean "
             "'HOSTLESS_PRELOAD_ROUTE'?"});
  // Who promised so and changes them is told, by the error handler: it ends the program.
  std::vector<std::string> broken = fixed;
  broken.push_back(with_library());
  test::Printed const ended = run(2, "with", broken, true);
  EXPECT_NE(ended.status, 0);
  EXPECT_EQ(ended.kept("forms"), 0) << ended.output;
  EXPECT_NE(ended.output.find("counts have changed on this rank"), std::string::npos) << ended.output;
  // Nothing is carried where ranks want different things, one of them nothing that there is.
  std::string const one_is_wrong =
      "export HOSTLESS_PRELOAD_ROUTE=direct; test ${PMI_RANK:-$OMPI_COMM_WORLD_RANK} = 0 && "
      "HOSTLESS_PRELOAD_ROUTE=twostep; " +
      with_library() + " HOSTLESS_PRELOAD_REPORT=stderr " + program().string() + " " + file("with").string();
  test::Printed const printed =
      test::run_as_ranks(test::tested_transport(GetParam()), 2, {"sh", "-c", one_is_wrong});
  EXPECT_EQ(printed.kept("forms"), 2) << printed.output;
  expect_in(printed.output,
            {": 0 calls carried", "(HOSTLESS_PRELOAD_... differ between ranks)",
             "HOSTLESS_PRELOAD_ROUTE is 'twostep' (it names a route). Use auto, off, direct,"});
}

INSTANTIATE_TEST_SUITE_P(Under, Preload, testing::Values("openmpi", "mpich"),
                         [](auto const& one) { return one.param; });

}  // namespace
}  // namespace hostless

int main(int count, char** words) {
  return hostless::test::main_of_ranks(count, words, [](auto const&, auto const&) { return 2; });
}
