// A block of the persistent kernel that falls silent: the solve ends with `peer_lost` by the deadline and a
// second, at whatever barrier it happens, and the GPU is as good as new.
#include <chrono>
#include <cmath>

#include "bound_case.hpp"

namespace hostless::test {
namespace {

constexpr double grace_s = 1.0;

SolveOptions options_of(Method method, double deadline_s) {
  SolveOptions options;
  options.method = method;
  options.run.kind = RunKind::persistent;
  options.run.gpus = 1;
  options.limits = {deadline_s, deadline_s};
  return options;
}

struct Timed {
  contract::Outcome outcome;
  double seconds;
};
Timed timed(BoundCase& bound, std::vector<double> const& b, std::vector<double> const& x0) {
  auto const begin = Clock::now();
  contract::Outcome outcome = bound.run(b, x0);
  return {std::move(outcome), std::chrono::duration<double>(Clock::now() - begin).count()};
}

contract::Outcome on_host(System const& a, MatrixOptions matrix, Method method, std::int64_t limit) {
  Setting setting;
  setting.matrix = std::move(matrix);
  setting.solve.method = method;
  setting.solve.rtol = 0;
  setting.solve.max_iterations = limit;
  return solve(a, random_vector(a.rows(), 7), setting);
}

class GpuLoss : public GpuWith<Method> {
 protected:
  System const a = System::problem(problem("poisson7", 20, 20, 20));
  std::vector<double> const b = random_vector(a.rows(), 7), x0 = random_vector(a.rows(), 99);
  // `blocks` blocks, `turns` tiles each.
  MatrixOptions options(int blocks, int turns = 1) const {
    MatrixOptions o;
    o.gpus = 1;
    o.block = 1;
    o.slices = 2 * blocks * turns;
    return o;
  }
};
INSTANTIATE_TEST_SUITE_P(All, GpuLoss, testing::ValuesIn(all_methods()), [](auto const& one) {
  return std::to_string(static_cast<int>(one.param)) + "_method";
});

// Every barrier of a whole solve, from the first to the last.
TEST_P(GpuLoss, AtEveryBarrier) {
  constexpr double deadline_s = 0.05;
  constexpr std::int64_t limit = 2;
  constexpr int blocks = 20, most_barriers = 100;
  for (int silent : {0, 1, blocks - 1}) {
    with_matrix(a, options(blocks), [&](Matrix const& matrix) {
      contract::Outcome const expected = on_host(a, options(blocks), GetParam(), limit);
      int lost = 0;
      for (std::uint32_t at = 1; lost + 1 == static_cast<int>(at) && at < most_barriers; ++at) {
        BoundCase bound(matrix, options_of(GetParam(), deadline_s), limit);
        bound.bound().silence({silent, at});
        Timed const seen = timed(bound, b, x0);
        if (seen.outcome.status == Status::peer_lost) {
          ++lost;
          EXPECT_LT(seen.seconds, deadline_s + grace_s) << "block " << silent << " at barrier " << at;
          EXPECT_GT(seen.seconds, 0.5 * deadline_s) << "nobody waited for block " << silent << " at " << at;
        } else {  // it fell silent after the last barrier
          EXPECT_EQ(seen.outcome.difference(expected), "") << "block " << silent << " at barrier " << at;
        }
        bound.bound().silence({});
        EXPECT_EQ(bound.run(b, x0).difference(expected), "") << "after block " << silent << " at " << at;
      }
      EXPECT_GT(lost, 5) << "meetings of " << limit << " iterations";
      EXPECT_LT(lost, most_barriers - 2) << "every solve is lost";
    });
  }
}

// All multiprocessors, several turns of slices each, later in a solve; a deadline that a wait after another
// would exceed by more than the second.
TEST_P(GpuLoss, OneDeadlineHoldsForAllThatABlockWaitsFor) {
  constexpr double deadline_s = 2;
  constexpr std::int64_t limit = 40;
  int const blocks = multiprocessors();
  MatrixOptions const matrix_options = options(blocks, 4);
  contract::Outcome const expected = on_host(a, matrix_options, GetParam(), limit);
  with_matrix(a, matrix_options, [&](Matrix const& matrix) {
    BoundCase bound(matrix, options_of(GetParam(), deadline_s), limit);
    std::uint32_t before = 0;  // barriers of the solves so far, at least
    for (int silent : {0, blocks / 2, blocks - 1}) {
      bound.bound().silence({silent, before + 11});
      Timed const seen = timed(bound, b, x0);
      EXPECT_EQ(seen.outcome.status, Status::peer_lost) << "block " << silent;
      EXPECT_LT(seen.seconds, deadline_s + grace_s) << "block " << silent;
      bound.bound().silence({});
      EXPECT_EQ(bound.run(b, x0).difference(expected), "") << "the same solver, after block " << silent;
      before += 11 + static_cast<std::uint32_t>(limit) * (GetParam() == Method::cg ? 3 : 2);
      BoundCase fresh(matrix, options_of(GetParam(), deadline_s), limit);
      EXPECT_EQ(fresh.run(b, x0).difference(expected), "") << "a new solver, after block " << silent;
    }
  });
}

// A matrix whose last row alone takes longer than others may wait: the solver says that a peer was lost, and
// a solver with patience solves it.
class GpuImpatience : public Gpu {};
TEST_F(GpuImpatience, EndsTheSolveAndNothingElse) {
  System a;
  std::int64_t const n = 400'000;
  for (std::int64_t i = 0; i + 1 < n; ++i) a.row({{i, 2.0}, {n - 1, -1e-3}});
  std::vector<std::pair<std::int64_t, double>> last;
  for (std::int64_t j = 0; j + 1 < n; ++j) last.emplace_back(j, -1e-3);
  last.emplace_back(n - 1, 3.0);
  a.row(last);
  auto const b = random_vector(n, 8);
  Setting setting;
  setting.matrix.block = 1;
  setting.solve.max_iterations = 3;
  contract::Outcome const expected = solve(a, b, setting);
  Setting impatient = on_gpu(setting, "csr");
  impatient.solve.limits = {1e-6, 1e-6};
  Ending const lost = solve_on_threads(a, b, impatient);
  EXPECT_EQ(lost.result.status, Status::peer_lost);
  EXPECT_TRUE(std::isnan(lost.result.true_residual));
  EXPECT_EQ(solve(a, b, on_gpu(setting, "csr")).difference(expected), "");
}

}  // namespace
}  // namespace hostless::test
