// Checkpoints and which GPUs ranks are on.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "checkpoint_checks.hpp"

namespace hostless::test {
namespace {

// GPUs of ranks choose which of a node's ranks speaks for it: no bit is theirs.
TEST(CheckpointsAndGpus, GoOnWhereverRanksAre) {
  System const a = System::problem(problem("poisson2d", 5, 4, 1));
  std::vector<double> const b = random_vector(20, 4);
  Folder const folder;
  for (Route const route : {Route::direct, Route::three_step, Route::leader}) {
    Setting with;
    with.ranks = 4;
    with.matrix.automatic_route = false;
    with.matrix.route = route;
    with.matrix.ranks_per_node = 2;
    auto const on = [&](int gpus) {
      Setting one = with;
      one.matrix.gpus = gpus;
      return one;
    };
    Ending const whole = solve_on_threads(a, b, with);
    ASSERT_GT(whole.result.iterations, 3);
    for (int const before : {0, 1, 2, 4})
      for (int const then : {0, 1, 2, 4}) {
        Setting cut = on(before);
        cut.solve.checkpoint_file = folder.file("g");
        cut.solve.checkpoint_every = 3;
        cut.solve.max_iterations = 3;
        solve_on_threads(a, b, cut);
        Setting rest = on(then);
        rest.solve.resume_file = folder.file("g");
        expect_same(solve_on_threads(a, b, rest), whole,
                    std::to_string(before) + " GPUs, then " + std::to_string(then));
      }
    Setting other = on(2);
    other.solve.resume_file = folder.file("g");
    other.matrix.ranks_per_node = 4;
    try {
      solve_on_threads(a, b, other);
      ADD_FAILURE() << "other nodes";
    } catch (Error const& error) {
      EXPECT_NE(std::string(error.what()).find("route, nodes, slices"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace hostless::test
