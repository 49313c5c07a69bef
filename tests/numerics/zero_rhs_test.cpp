// Right-hand sides that are zero, or as good as zero: x = 0, whatever else is the matter.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "breakdown_case.hpp"

namespace hostless::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST_P(Breakdown, ZeroRightHandSide) {
  auto const e =
      solve_on_threads(System::path(6), std::vector<double>(6, 0.0), {1, 2, 3, 4, 5, 6}, setting());
  EXPECT_EQ(e.result.status, Status::converged);
  EXPECT_EQ(e.result.iterations, 0);
  EXPECT_EQ(e.result.true_residual, 0);
  EXPECT_TRUE(same_bits(e.x, std::vector<double>(6, 0.0)));
}

TEST_P(Breakdown, ZeroRightHandSideWithAGuessThatIsNotFinite) {
  auto const e =
      solve_on_threads(System::path(4), std::vector<double>(4, 0.0), {nan, 1, 1, infinity}, setting());
  EXPECT_EQ(e.result.status, Status::converged);
  EXPECT_TRUE(same_bits(e.x, std::vector<double>(4, 0.0)));
}

// Nothing that underflows decides: |b| is below what is asked for, as zero is.
TEST_P(Breakdown, RightHandSideBelowTheAbsoluteTolerance) {
  Setting p = setting();
  p.solve.atol = 1e-12;
  for (double const b : {1e-300, 1e-200, 1e-160, 1e-150}) {
    auto const e = solve_on_threads(System::path(4), {b, 0, -b, 0}, {1, 2, 3, 4}, p);
    if (b < 1e-154) {
      EXPECT_EQ(e.result.status, Status::converged) << b << ": " << e.result.message;
      EXPECT_EQ(e.result.iterations, 0);
      EXPECT_TRUE(same_bits(e.x, std::vector<double>(4, 0.0)));
      double const norm = std::sqrt(2.0) * b;  // what x = 0 leaves is all of b
      EXPECT_NEAR(e.result.true_residual / norm, 1, 1e-14);
      EXPECT_NEAR(e.result.rhs_norm / norm, 1, 1e-14);
      EXPECT_EQ(e.result.true_relative_residual, 1);
    }
    auto const from_zero = solve_on_threads(System::path(4), {b, 0, -b, 0}, {0, 0, 0, 0}, p);
    EXPECT_EQ(from_zero.result.status, Status::converged) << b << ": " << from_zero.result.message;
    EXPECT_LE(from_zero.result.true_residual, 1e-12);
  }
  p.solve.atol = 1e-160;  // whose square underflows
  EXPECT_EQ(solve_on_threads(System::path(4), {1e-200, 0, 0, 0}, p).result.status, Status::breakdown);
}

// x = 0 asks for no M, whatever a diagonal makes of it.
TEST_P(Breakdown, ZeroRightHandSideOfAMatrixWithoutAPreconditioner) {
  for (double const entry : {-1.0, 0.0, 1e-310}) {  // the last is positive, its inverse infinite
    Setting p = setting();
    p.solve.preconditioner = PreconditionerKind::jacobi;
    auto const e = solve_on_threads(System::diagonal({1, entry, 2, 3}), {0, 0, 0, 0}, {1, 2, 3, 4}, p);
    EXPECT_EQ(e.result.status, Status::converged) << entry << ": " << e.result.message;
    EXPECT_EQ(e.result.iterations, 0);
    EXPECT_EQ(e.result.true_residual, 0);
    EXPECT_EQ(e.result.residual_history, std::vector<double>{0.0});
    EXPECT_TRUE(same_bits(e.x, std::vector<double>(4, 0.0)));
  }
}

}  // namespace
}  // namespace hostless::test
