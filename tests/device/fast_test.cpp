// `--reduction fast` on a GPU: the order of sums is free, the answer is judged by its own residual.
#include <algorithm>
#include <cstdio>

#include "gpu_setting.hpp"

namespace hostless::test {
namespace {

struct Case {
  std::string name;
  System system;
  int block, turns;  // tiles that a block works on
};

std::vector<Case> cases() {
  return {{"cube", System::problem(problem("poisson7", 24, 24, 24)), 1, 1},
          {"cube, 3 turns", System::problem(problem("poisson7", 24, 24, 24)), 1, 3},
          {"elasticity, 2 turns", System::problem(problem("elasticity-hex8", 9, 9, 9)), 3, 2},
          {"circuit", System::problem(problem("circuit", 60, 60, 1)), 1, 1}};
}

class GpuFast : public GpuWith<Method> {};
INSTANTIATE_TEST_SUITE_P(All, GpuFast, testing::ValuesIn(all_methods()), [](auto const& one) {
  return "method_" + std::to_string(static_cast<int>(one.param));
});

// Every run and layout reaches the target by the residual that long double sees; some order must have been
// another than the plan's, or the option is ignored.
TEST_P(GpuFast, ReachesItsTarget) {
  int solves = 0, others = 0;
  for (Case const& one : cases()) {
    auto const b = random_vector(one.system.rows(), 41);
    Setting setting;
    setting.matrix.block = one.block;
    setting.matrix.slices = 2 * multiprocessors() * one.turns - 3;
    setting.solve.method = GetParam();
    setting.solve.preconditioner = PreconditionerKind::jacobi;
    Ending const ordered = solve_on_threads(one.system, b, setting);
    ASSERT_EQ(ordered.result.status, Status::converged) << one.name;
    for (char const* format : {"auto", "sell", "csr"}) {
      for (RunKind run : gpu_runs()) {
        Setting fast = on_gpu(setting, format, run);
        fast.solve.reduction = Reduction::fast;
        Ending const ended = solve_on_threads(one.system, b, fast);
        std::string const where = one.name + ' ' + format + ' ' + name(run);
        EXPECT_EQ(ended.result.status, Status::converged) << where;
        // The judge's own residual has fp64 rounding: a little above its target may be below it.
        EXPECT_LE(residual_of(one.system, b, ended.x), 1.0001 * setting.solve.rtol * norm(b)) << where;
        // Pipelined, a last bit decides whether the true residual asks for a restart.
        EXPECT_LE(ended.result.iterations, 2 + ordered.result.iterations * 3 / 2) << where;
        EXPECT_EQ(choice(ended.result, "reduction").rfind("fast (", 0), 0u)
            << where << ": " << choice(ended.result, "reduction");
        ++solves;
        others += same_bits(ended.result.residual_history, ordered.result.residual_history) ? 0 : 1;
      }
    }
  }
  std::printf("fast sums: %d solves, %d with other bits than ordered ones\n", solves, others);
  EXPECT_GT(others, 0) << "the order was never free";
}

// A choice of this solve, not of the GPU: an ordered one beside it keeps its bits.
class GpuFastBeside : public GpuWith<RunKind> {};
INSTANTIATE_TEST_SUITE_P(All, GpuFastBeside, testing::ValuesIn(gpu_runs()), [](auto const& one) {
  return "run_" + std::to_string(static_cast<int>(one.param));
});
TEST_P(GpuFastBeside, OrderedOnesKeepTheirBits) {
  System const a = System::problem(problem("poisson7", 12, 12, 12));
  auto const b = random_vector(a.rows(), 42);
  Setting setting;
  setting.matrix.slices = 2 * multiprocessors() * 2 - 1;
  contract::Outcome const expected = solve(a, b, setting);
  Setting const gpu = on_gpu(setting, "auto", GetParam());
  with_matrix(a, gpu.matrix, [&](Matrix const& matrix) {
    SolveOptions options = gpu.solve;
    Solver ordered(matrix, options);
    options.reduction = Reduction::fast;
    Solver fast(matrix, options);
    auto const guess = random_vector(a.rows(), 99);
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(solve(fast, b, guess).status, Status::converged);
      EXPECT_EQ(solve(ordered, b, guess).difference(expected), "");
    }
  });
}

}  // namespace
}  // namespace hostless::test
