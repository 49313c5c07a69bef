// Matrices that are not positive definite, or not symmetric: the breakdown tables of the methods that take
// some of them, worked out by hand, and systems whose ranks do not read each other mutually.
#include "general.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "ordered_reference.hpp"
#include "sample.hpp"

namespace hostless::test {
namespace {

INSTANTIATE_TEST_SUITE_P(All, General, testing::ValuesIn(all_runs_of_each()), [](auto const& one) {
  return std::string(name(one.param.method)) + "_" + one.param.run.name;
});

void expect_near(std::vector<double> const& x, std::vector<double> const& expected,
                 double tolerance = 1e-12) {
  ASSERT_EQ(x.size(), expected.size());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], expected[i], tolerance) << i;
}

TEST_P(General, IndefiniteMatricesAreNoObstacle) {
  auto e = solve_on_threads(System::diagonal({2, -1}), {2, 1}, setting());
  EXPECT_EQ(e.result.status, Status::converged) << e.result.message;
  EXPECT_EQ(e.result.iterations, 2);
  expect_near(e.x, {1, -1});
  e = solve_on_threads(System::diagonal({-1, -2, -3}), {1, 1, 1}, setting());
  EXPECT_EQ(e.result.status, Status::converged);
  EXPECT_EQ(e.result.iterations, 3);
  expect_near(e.x, {-1, -0.5, -1.0 / 3});
  e = solve_on_threads(System::diagonal({1, -1}), {0, 1}, setting());
  EXPECT_EQ(e.result.iterations, 1);
  expect_near(e.x, {0, -1});
}

// (r, A r) = 0: BiCGStab and CR have no first step, MINRES makes one of length 0 and then the right one.
TEST_P(General, ADirectionWithoutCurvature) {
  for (System const& a : {System::dense({{0, 1}, {1, 0}}), System::diagonal({1, -1})}) {
    std::vector<double> const b = a.value.size() == 4 ? std::vector<double>{1, 0} : std::vector<double>{1, 1};
    auto const e = solve_on_threads(a, b, setting());
    if (is(Method::minres)) {
      EXPECT_EQ(e.result.status, Status::converged);
      EXPECT_EQ(e.result.iterations, 2);
      EXPECT_LE(residual_of(a, b, e.x), 1e-14);
    } else {
      EXPECT_EQ(e.result.status, Status::breakdown);
      EXPECT_EQ(e.result.iterations, 0);
      EXPECT_NE(e.result.message.find(is(Method::cr) ? "r'M A M r = 0 in the first step"
                                                     : "r'A M r = 0 in the first step"),
                std::string::npos)
          << e.result.message;
    }
  }
}

TEST_P(General, MatricesThatAreNotSymmetric) {
  System const a = System::dense({{2, 1, 0}, {0, 2, 1}, {0, 0, 4}});
  if (needs_symmetric()) {
    EXPECT_THROW(solve_on_threads(a, {1, 1, 1}, setting()), Error);
    return;
  }
  Setting p = setting();
  p.solve.rtol = 1e-13;
  auto const e = solve_on_threads(a, {4, 7, 12}, p);
  EXPECT_EQ(e.result.status, Status::converged);
  expect_near(e.x, {1, 2, 3}, 1e-11);
}

// A s = (1, 0) is orthogonal to s = (0, 1): omega = 0, and from x = (1, 0) on there is no step.
TEST_P(General, AStabilisingStepOfLengthZero) {
  if (!is(Method::bicgstab)) return;
  auto const e = solve_on_threads(System::dense({{1, 1}, {-1, 0}}), {1, 0}, setting());
  EXPECT_EQ(e.result.status, Status::breakdown);
  EXPECT_EQ(e.result.iterations, 1);
  EXPECT_EQ(e.x, (std::vector<double>{1, 0}));
  EXPECT_EQ(e.result.true_residual, 1);
}

// r = (1, 4, 1): (r, A r) = 18, (A r, A r) = 36, so r becomes (-1, 2, 2), whose (r, A r) is 0: A is regular,
// and CR has no second step. The true residual says how far it is; MINRES goes on.
TEST_P(General, ALaterDirectionWithoutCurvature) {
  if (!needs_symmetric()) return;
  System const a = System::diagonal({4, 1, -2});
  auto const e = solve_on_threads(a, {1, 4, 1}, setting());
  if (is(Method::cr)) {
    EXPECT_EQ(e.result.status, Status::breakdown);
    EXPECT_EQ(e.result.iterations, 1);
    EXPECT_EQ(e.result.restarts, 1);
    EXPECT_EQ(e.x, (std::vector<double>{0.5, 2, 0.5}));
    EXPECT_EQ(e.result.true_residual, 3);
    EXPECT_NE(e.result.message.find("r'M A M r = 0 in the first step from the true residual, after 1 iter"),
              std::string::npos)
        << e.result.message;
    EXPECT_NE(e.result.message.find("method minres"), std::string::npos) << e.result.message;
  } else {
    EXPECT_EQ(e.result.status, Status::converged);
    EXPECT_EQ(e.result.iterations, 3);
    expect_near(e.x, {0.25, 4, -0.5});
  }
}

// However an indefinite matrix treats a method, `converged` is said of a residual that is small.
TEST_P(General, ConvergedIsTrueOfIndefiniteMatrices) {
  for (double shift : {0.3, 1.1, 2.7, 3.9}) {
    System a = System::problem(problem("poisson2d", 12, 11, 1, 1.0));
    for (std::int64_t i = 0; i < a.rows(); ++i) a.at(i, i) -= shift;
    auto const b = random_vector(a.rows(), 11);
    Setting p = setting();
    p.solve.rtol = 1e-9;
    auto const e = solve_on_threads(a, b, p);
    double const left = residual_of(a, b, e.x) / norm(b);
    EXPECT_NEAR(e.result.true_relative_residual, left, 1e-3 * left + 1e-13);
    EXPECT_EQ(e.result.status == Status::converged, left <= 1e-9) << shift << ' ' << e.result.message;
    if (is(Method::minres)) {
      EXPECT_EQ(e.result.status, Status::converged) << shift;
    }
  }
}

// b = (1, 0) = (1/2, 1/2) + (1/2, -1/2), the first in the null space: the least residual has length
// sqrt(1/2).
TEST_P(General, SingularInconsistent) {
  auto const e = solve_on_threads(System::path(2, true), {1, 0}, setting());
  EXPECT_NE(e.result.status, Status::converged);
  if (is(Method::minres)) {
    EXPECT_EQ(e.result.status, Status::stagnated) << e.result.message;
    EXPECT_NEAR(e.result.true_residual, std::sqrt(0.5), 1e-14);
    EXPECT_NEAR(e.x[0] - e.x[1], 0.5, 1e-14);
  }
}

TEST_P(General, LeastResidualOfALargerSingularSystem) {
  if (!is(Method::minres)) return;
  System const a = System::path(60, true);
  auto const b = random_vector(60, 3);
  double mean = 0;
  for (double v : b) mean += v / 60;
  auto const e = solve_on_threads(a, b, setting());
  EXPECT_EQ(e.result.status, Status::stagnated) << e.result.message;
  EXPECT_NEAR(e.result.true_residual, std::abs(mean) * std::sqrt(60.0), 1e-6);
}

TEST_P(General, RightHandSideInTheNullSpace) {
  auto const e = solve_on_threads(System::path(2, true), {1, 1}, setting());
  EXPECT_EQ(e.result.status, Status::breakdown);
  EXPECT_EQ(e.x, (std::vector<double>{0, 0}));
}

// MINRES and CR need a positive definite M, and take absolute values, 1 for 0; BiCGStab any that is regular.
TEST_P(General, DiagonalsThatAreNotPositive) {
  Setting p = setting();
  p.solve.preconditioner = PreconditionerKind::jacobi;
  auto e = solve_on_threads(System::diagonal({-2, 4}), {4, 4}, p);
  EXPECT_EQ(e.result.status, Status::converged);
  expect_near(e.x, {-2, 1}, is(Method::bicgstab) ? 0 : 1e-14);
  EXPECT_EQ(e.result.iterations, is(Method::bicgstab) ? 1 : 2);
  System const saddle = System::dense({{100, 0, 1}, {0, -0.25, 1}, {1, 1, 0}});
  e = solve_on_threads(saddle, saddle.times({1, 2, 3}), p);
  if (is(Method::bicgstab)) {
    EXPECT_EQ(e.result.status, Status::breakdown);
    EXPECT_NE(e.result.message.find("row 3"), std::string::npos) << e.result.message;
  } else {
    EXPECT_EQ(e.result.status, Status::converged) << e.result.message;
    expect_near(e.x, {1, 2, 3}, 1e-9);
  }
}

TEST_P(General, BlocksThatAreNotPositiveAreTold) {
  if (!needs_symmetric()) return;
  Setting p = setting();
  p.ranks = 1;
  p.matrix.block = 2;
  p.solve.preconditioner = PreconditionerKind::block_jacobi;
  auto const e = solve_on_threads(System::dense({{2, 0, 0, 0}, {0, 2, 0, 0}, {0, 0, 1, 2}, {0, 0, 2, 1}}),
                                  {1, 1, 1, 1}, p);
  EXPECT_EQ(e.result.status, Status::indefinite_preconditioner);
  EXPECT_NE(e.result.message.find("row 3 is not positive"), std::string::npos) << e.result.message;
  EXPECT_NE(e.result.message.find("jacobi, which takes absolute values"), std::string::npos)
      << e.result.message;
}

// The blocks are the matrix, and none of them has a positive diagonal, or is symmetric.
TEST_P(General, BlocksThatAreNotSymmetric) {
  if (!is(Method::bicgstab)) return;
  Setting p = setting();
  p.ranks = 1;
  p.matrix.block = 2;
  p.solve.preconditioner = PreconditionerKind::block_jacobi;
  System const a = System::dense({{0, 1, 0, 0}, {-2, 1, 0, 0}, {0, 0, 3, -8}, {0, 0, 1, -4}});
  std::vector<double> const x{1, 2, 3, 4};
  auto const e = solve_on_threads(a, a.times(x), p);
  EXPECT_EQ(e.result.status, Status::converged);
  EXPECT_EQ(e.result.iterations, 1);
  expect_near(e.x, x);
}

TEST_P(General, FunctionsOfTheUserPrecondition) {
  System const a = System::diagonal({2, 4, 8, 16});
  for (double sign : {1.0, -1.0}) {
    Setting p = setting();
    p.ranks = 1;
    p.solve.preconditioner = PreconditionerKind::function;
    auto const e = solve_on_threads(a, {2, 4, 8, 16}, p, [sign](int, SolveOptions& o) {
      o.preconditioner_function = [sign](double const* r, double* z) {
        for (int i = 0; i < 4; ++i) z[i] = sign * r[i] / (2 << i);
      };
    });
    bool const refuses = sign < 0 && needs_symmetric();
    EXPECT_EQ(e.result.status, refuses ? Status::indefinite_preconditioner : Status::converged);
    EXPECT_EQ(e.result.iterations, refuses ? 0 : 1);
    if (!refuses) expect_near(e.x, {1, 1, 1, 1});
  }
}

// Constants vanish on the right, and rows do not add up to zero: b cannot be judged by its mean.
TEST_P(General, NullSpaceOfOneSideOnly) {
  if (!is(Method::bicgstab)) return;
  Setting p = setting();
  p.solve.null_space_constant = true;
  try {
    solve_on_threads(System::dense({{1, -1, 0}, {0, 1, -1}, {0, -2, 2}}), {1, 0, 0}, p);
    FAIL() << "accepted";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_NE(std::string(error.what()).find("A' 1"), std::string::npos) << error.what();
  }
}

/// Upwind differences of a convection-diffusion equation on a grid; `one_sided`: every tenth row reads
/// nothing behind it, so that its rank does not.
System convection(std::int64_t nx, std::int64_t ny, double wind, int one_sided = 0) {
  System s;
  for (std::int64_t y = 0; y < ny; ++y) {
    for (std::int64_t x = 0; x < nx; ++x) {
      std::int64_t const i = y * nx + x;
      bool const cut = one_sided != 0 && i % one_sided == 0;
      std::vector<std::pair<std::int64_t, double>> row;
      if (y > 0) row.emplace_back(i - nx, -1 - wind);
      if (x > 0) row.emplace_back(i - 1, -1 - wind / 2);
      row.emplace_back(i, 4 + 1.5 * wind);
      if (x + 1 < nx && !cut) row.emplace_back(i + 1, -1.0);
      if (y + 1 < ny && !cut) row.emplace_back(i + nx, -1.0);
      s.row(row);
    }
  }
  return s;
}
/// Rows read what is behind them and nothing else: no rank but the last has a neighbour that reads of it.
System upper(std::int64_t n) {
  System s;
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<std::pair<std::int64_t, double>> row{{i, 3.0}};
    for (std::int64_t j : {i + 1, i + n / 3})
      if (j > i && j < n) row.emplace_back(j, -1.0);
    s.row(row);
  }
  return s;
}

TEST(NotSymmetric, BitsAreThoseOfTheSecondWriting) {
  using P = MatrixOptions::Partition;
  std::size_t system = 0;
  for (System const& a : {convection(14, 9, 3.0), convection(12, 12, 0.5, 10), upper(90)}) {
    std::size_t number = system++;
    for (int ranks : {1, 2, 3, 5}) {
      for (P partition : {P::contiguous, P::metis}) {
        for (PreconditionerKind kind : {PreconditionerKind::none, PreconditionerKind::jacobi}) {
          if (!is_tried(number++, 3)) continue;
          Setting setting;
          setting.matrix.slices = 3;
          setting.matrix.partition = partition;
          setting.solve.method = Method::bicgstab;
          setting.solve.rtol = 1e-9;
          setting.solve.preconditioner = kind;
          auto const b = random_vector(a.rows(), 17);
          OrderedPlan plan;
          Ending const got = solve_aligned(a, ranks, setting, b, plan);
          OrderedSolve const expected = OrderedMethods(a, plan, b, kind, 1e-9).solve(Method::bicgstab);
          std::string const what = std::to_string(ranks) + " ranks, " + name(kind);
          EXPECT_EQ(got.result.status, Status::converged) << what;
          EXPECT_TRUE(same_bits(got.result.residual_history, expected.history)) << what;
          EXPECT_TRUE(same_bits(got.x, expected.x)) << what;
        }
      }
    }
  }
}

// Every way to execute the text, every route and two nodes: the same bits.
TEST(NotSymmetric, RunsAndRoutesAgree) {
  System const a = convection(20, 17, 2.0, 7);
  auto const b = random_vector(a.rows(), 5);
  std::vector<double> expected;
  for (Route route : all_routes) {
    for (RunChoice const& run : all_runs()) {
      Setting p;
      p.ranks = 4;
      p.matrix.route = route;
      p.matrix.ranks_per_node = 2;
      p.solve.method = Method::bicgstab;
      p.solve.preconditioner = PreconditionerKind::jacobi;
      use(p, run);
      auto const e = solve_on_threads(a, b, p);
      EXPECT_EQ(e.result.status, Status::converged) << run.name;
      if (expected.empty()) expected = e.x;
      EXPECT_TRUE(same_bits(e.x, expected)) << run.name;
    }
  }
}

}  // namespace
}  // namespace hostless::test
