// Every way in which a solve can fail to be ordinary, with the exact status and x that it must end with: for
// all methods, on the ranks and runs of breakdown_settings.hpp. The cases are small enough to be worked out
// by hand.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "breakdown_case.hpp"

namespace hostless::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::string where_name(testing::TestParamInfo<BreakdownSetting> const& info) {
  std::string text = name(info.param.method);
  std::replace(text.begin(), text.end(), '-', '_');
  return text + "_" + std::to_string(info.param.ranks) + "_" + info.param.run.name;
}

/// Numbers that conjugate gradients meet without rounding, and the others to it.
void expect_solution(std::vector<double> const& x, std::vector<double> const& expected) {
  ASSERT_EQ(x.size(), expected.size());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], expected[i], 4e-16 * std::abs(expected[i]));
}

INSTANTIATE_TEST_SUITE_P(All, Breakdown, testing::ValuesIn(everywhere()), where_name);
INSTANTIATE_TEST_SUITE_P(All, DefiniteBreakdown, testing::ValuesIn(everywhere(Demands::positive_definite)),
                         where_name);
INSTANTIATE_TEST_SUITE_P(All, SymmetricBreakdown, testing::ValuesIn(everywhere(Demands::symmetric)),
                         where_name);

TEST_P(Breakdown, ExactInitialGuess) {
  std::vector<double> const x{1, -2, 3, 0, 5};
  System const a = System::path(5);
  Setting p = setting();
  p.solve.rtol = 0;
  auto const e = solve_on_threads(a, a.times(x), x, p);
  EXPECT_EQ(e.result.status, Status::converged);
  EXPECT_EQ(e.result.iterations, 0);
  EXPECT_EQ(e.result.residual_history, std::vector<double>{0.0});
  EXPECT_TRUE(same_bits(e.x, x));
}

TEST_P(Breakdown, GuessWithinTheTolerance) {
  Setting p = setting();
  p.solve.atol = 0.5;
  auto const e = solve_on_threads(System::diagonal({1, 1}), {1, 1}, {1.25, 1}, p);
  EXPECT_EQ(e.result.status, Status::converged);
  EXPECT_EQ(e.result.iterations, 0);
  EXPECT_EQ(e.x, (std::vector<double>{1.25, 1}));
  EXPECT_EQ(e.result.true_residual, 0.25);
}

TEST_P(Breakdown, ZeroMatrix) {
  for (System const& a : {System::diagonal({0, 0, 0}), System::dense({{0, 0, 0}, {0, 0, 0}, {0, 0, 0}})}) {
    auto const e = solve_on_threads(a, {1, 2, 3}, {4, 5, 6}, setting());
    EXPECT_EQ(e.result.status, Status::breakdown);
    EXPECT_EQ(e.result.iterations, 0);
    EXPECT_EQ(e.x, (std::vector<double>{4, 5, 6}));
  }
}

TEST_P(Breakdown, MatrixWithoutEntries) {
  System a;
  for (int i = 0; i < 3; ++i) a.row({});
  auto const e = solve_on_threads(a, {1, 2, 3}, {0, 0, 0}, setting());
  EXPECT_EQ(e.result.status, Status::breakdown);
  EXPECT_EQ(e.x, (std::vector<double>{0, 0, 0}));
}

TEST_P(Breakdown, OneByOne) {  // leaves all ranks but one empty
  auto const e = solve_on_threads(System::diagonal({4}), {8}, setting());
  EXPECT_EQ(e.result.status, Status::converged);
  EXPECT_EQ(e.result.iterations, 1);
  EXPECT_EQ(e.x, std::vector<double>{2});
}

TEST_P(Breakdown, EmptyRanks) {  // 12-row shares: the last rank owns everything
  Setting p = setting();
  p.aligned = true;
  auto const e = solve_on_threads(System::path(3), {1, 0, 1}, p);
  EXPECT_EQ(e.result.status, Status::converged);
  expect_solution(e.x, {1, 1, 1});
}

TEST_P(Breakdown, DiagonalWithJacobi) {
  Setting p = setting();
  p.solve.preconditioner = PreconditionerKind::jacobi;
  auto const e = solve_on_threads(System::diagonal({2, 4, 8, 0.5, 1024}), {2, 8, 24, 2, 5120}, p);
  EXPECT_EQ(e.result.status, Status::converged);
  EXPECT_EQ(e.result.iterations, 1);
  expect_solution(e.x, {1, 2, 3, 4, 5});
}

// p = b = (1, 1) has p' A p = 0 and A p = (1, -1): A is not singular, and nobody says so.
TEST_P(DefiniteBreakdown, ADirectionWithoutCurvature) {
  auto const e = solve_on_threads(System::diagonal({1, -1}), {1, 1}, setting());
  EXPECT_EQ(e.result.status, Status::breakdown);
  EXPECT_NE(e.result.message.find("p'A p = 0 in the first step from the true residual, after 0 iterations"),
            std::string::npos)
      << e.result.message;
  EXPECT_NE(e.result.message.find("singular or indefinite along p"), std::string::npos) << e.result.message;
}

TEST_P(DefiniteBreakdown, IndefiniteAtOnce) {
  auto const e = solve_on_threads(System::diagonal({1, -1}), {0, 1}, setting());
  EXPECT_EQ(e.result.status, Status::indefinite_matrix);
  EXPECT_EQ(e.result.iterations, 0);
  EXPECT_NE(e.result.message.find("= -1.000e+00 after 0 iterations"), std::string::npos) << e.result.message;
}

// p = (2, 1): p' A p = 7, alpha = 5/7; then r = (-6/7, 12/7) with r' A r = -72/49.
TEST_P(DefiniteBreakdown, IndefiniteLater) {
  auto const e = solve_on_threads(System::diagonal({2, -1}), {2, 1}, setting());
  EXPECT_EQ(e.result.status, Status::indefinite_matrix);
  EXPECT_EQ(e.result.iterations, 1);
  EXPECT_DOUBLE_EQ(e.x[0], 10.0 / 7);
  EXPECT_DOUBLE_EQ(e.x[1], 5.0 / 7);
}

TEST_P(DefiniteBreakdown, NegativeDefinite) {
  auto const e = solve_on_threads(System::diagonal({-1, -2, -3}), {1, 1, 1}, setting());
  EXPECT_EQ(e.result.status, Status::indefinite_matrix);
  EXPECT_EQ(e.result.iterations, 0);
  EXPECT_EQ(e.x, (std::vector<double>{0, 0, 0}));
}

TEST_P(DefiniteBreakdown, DirectionWithoutCurvature) {
  auto const e = solve_on_threads(System::dense({{0, 1}, {1, 0}}), {1, 0}, setting());
  EXPECT_EQ(e.result.status, Status::breakdown);
  EXPECT_EQ(e.result.iterations, 0);
  EXPECT_EQ(e.x, (std::vector<double>{0, 0}));
}

void refuse(System const& a, Setting const& p, ErrorCode code) {
  try {
    solve_on_threads(a, std::vector<double>(static_cast<std::size_t>(a.rows()), 1.0), p);
    FAIL() << "accepted";
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), code) << e.what();
  }
}

TEST_P(SymmetricBreakdown, NotSymmetric) {
  refuse(System::dense({{2, 1, 0}, {0, 2, 1}, {0, 1, 2}}), setting(), ErrorCode::bad_input);
  System a = System::path(40);
  a.at(20, 21) = -1.001;
  refuse(a, setting(), ErrorCode::bad_input);
}

TEST_P(Breakdown, DuplicateEntries) {
  System a = System::path(4);
  a.column[3] = a.column[4];
  refuse(a, setting(), ErrorCode::bad_input);
}

TEST_P(Breakdown, ColumnsOutOfRange) {
  System a = System::diagonal({1, 1, 1});
  a.column[2] = 3;
  refuse(a, setting(), ErrorCode::bad_input);
  a.column[2] = -1;
  refuse(a, setting(), ErrorCode::bad_input);
}

// The last row lies on the last rank only; every rank must say the same.
TEST_P(Breakdown, NotFiniteInTheMatrix) {
  for (double bad : {nan, infinity, -infinity}) {
    for (auto kind :
         {PreconditionerKind::none, PreconditionerKind::jacobi, PreconditionerKind::block_jacobi}) {
      Setting p = setting();
      p.solve.preconditioner = kind;
      System a = System::path(4);
      a.at(3, 3) = bad;
      auto e = solve_on_threads(a, {1, 1, 1, 1}, {2, 2, 2, 2}, p);
      EXPECT_EQ(e.result.status, Status::not_finite) << bad << ' ' << name(kind);
      a = System::path(4);
      a.at(2, 3) = a.at(3, 2) = bad;
      e = solve_on_threads(a, {1, 1, 1, 1}, p);
      EXPECT_EQ(e.result.status, Status::not_finite) << bad << ' ' << name(kind);
    }
  }
}

TEST_P(Breakdown, NotFiniteInTheRightHandSide) {
  for (double bad : {nan, infinity, -infinity}) {
    auto const e = solve_on_threads(System::path(4), {1, 1, 1, bad}, {3, 4, 5, 6}, setting());
    EXPECT_EQ(e.result.status, Status::not_finite);
    EXPECT_EQ(e.x, (std::vector<double>{3, 4, 5, 6}));
  }
}

TEST_P(Breakdown, NotFiniteInTheGuess) {
  for (double bad : {nan, infinity, -infinity}) {
    auto e = solve_on_threads(System::path(4), {1, 1, 1, 1}, {0, 0, 0, bad}, setting());
    EXPECT_EQ(e.result.status, Status::not_finite);
    EXPECT_EQ(e.result.iterations, 0);
    EXPECT_NE(e.result.message.find("the guess"), std::string::npos) << e.result.message;
    System no_column = System::diagonal({1, 2, 4});
    no_column.row({});  // A x does not see it
    e = solve_on_threads(no_column, {1, 2, 3, 0}, {0, 0, 0, bad}, setting());
    EXPECT_EQ(e.result.status, Status::not_finite);
    EXPECT_EQ(e.result.iterations, 0);
    e = solve_on_threads(no_column, {0, 0, 0, 0}, {0, 0, 0, bad}, setting());  // nobody reads it
    EXPECT_EQ(e.result.status, Status::converged);
    EXPECT_TRUE(same_bits(e.x, {0, 0, 0, 0}));
  }
}

TEST_P(Breakdown, OverflowOfTheSquare) {
  auto e = solve_on_threads(System::path(4), {1e200, 0, 0, 0}, setting());
  EXPECT_EQ(e.result.status, Status::not_finite);
  EXPECT_NE(e.result.message.find("Scale"), std::string::npos) << e.result.message;
  e = solve_on_threads(System::path(4), {1, 0, 0, 0}, {0, 0, 0, 1e200}, setting());
  EXPECT_EQ(e.result.status, Status::not_finite);
}

TEST_P(Breakdown, UnderflowOfTheSquare) {
  auto const e = solve_on_threads(System::path(4), {1e-200, 0, 0, 0}, setting());
  EXPECT_EQ(e.result.status, Status::breakdown);
  EXPECT_NE(e.result.message.find("Scale"), std::string::npos) << e.result.message;
  EXPECT_EQ(e.x, (std::vector<double>{0, 0, 0, 0}));
}

// The square of the target underflows: a residual ten times above it would look like zero.
TEST_P(Breakdown, TargetBelowTheSmallestSquare) {
  Setting p = setting();
  p.solve.rtol = 1e-10;
  auto e = solve_on_threads(System::diagonal({1, 1, 1, 1}), {2e-154, 0, 0, 0},
                            {2e-154, 1e-163, 1e-163, 1e-163}, p);
  EXPECT_EQ(e.result.status, Status::breakdown);
  EXPECT_NE(e.result.message.find("Scale"), std::string::npos) << e.result.message;
  // No target at all: nothing above it may look like zero either.
  System const path = System::path(50);
  auto b = random_vector(50, 3);
  double const to_length = 2e-154 / norm(b);
  for (double& v : b) v *= to_length;
  p.solve.rtol = 0;
  e = solve_on_threads(path, b, p);
  EXPECT_EQ(e.result.status, Status::breakdown);
  EXPECT_NE(e.result.message.find("Scale"), std::string::npos) << e.result.message;
  p.solve.rtol = 1e-10;
  p.solve.atol = 2e-154;  // a target whose square is there
  e = solve_on_threads(System::diagonal({1, 1, 1, 1}), {2e-154, 0, 0, 0}, p);
  EXPECT_EQ(e.result.status, Status::converged);
}

// A may be of any size as long as b' b fits, but for methods that square A.
TEST_P(Breakdown, LargeAndSmallMatrices) {
  Method const method = GetParam().method;
  bool const twice = method != Method::cg && method != Method::single_reduction_cg;
  for (double scale : {twice ? 0x1p400 : 0x1p600, twice ? 0x1p-400 : 0x1p-600}) {
    auto const e = solve_on_threads(System::diagonal({scale, scale}), {2, 3}, setting());
    EXPECT_EQ(e.result.status, Status::converged);
    EXPECT_TRUE(same_bits(e.x, {2 / scale, 3 / scale}));
  }
}

TEST_P(Breakdown, SubnormalSolutionIsNotFlushed) {
  auto const e = solve_on_threads(System::diagonal({0x1p620}), {0x1p-440}, setting());
  if (GetParam().method == Method::minres) {  // which has A / |b| among its scalars
    EXPECT_EQ(e.result.status, Status::not_finite);
    return;
  }
  EXPECT_EQ(e.result.status, Status::converged);
  EXPECT_TRUE(same_bits(e.x, {0x1p-1060}));
}

TEST_P(DefiniteBreakdown, SubnormalMatrix) {  // (p, A p) = 2^-1060 2^-1000 is zero
  auto e = solve_on_threads(System::diagonal({0x1p-1060}), {0x1p-500}, setting());
  EXPECT_EQ(e.result.status, Status::breakdown);
  EXPECT_TRUE(same_bits(e.x, {0.0}));
  e = solve_on_threads(System::diagonal({0x1p-1060}), {1}, setting());  // x = 2^1060 does not exist
  EXPECT_EQ(e.result.status, Status::not_finite);
}

TEST_P(Breakdown, ToleranceZeroMetExactly) {
  Setting p = setting();
  p.solve.rtol = 0;
  auto const e = solve_on_threads(System::diagonal({4, 4, 4, 4}), {1, 2, 3, 4}, p);
  EXPECT_EQ(e.result.status, Status::converged);
  if (GetParam().method != Method::minres) EXPECT_EQ(e.result.iterations, 1);  // it scales r to length 1
  EXPECT_EQ(e.result.true_residual, 0);
  EXPECT_TRUE(same_bits(e.x, {0.25, 0.5, 0.75, 1}));
}

TEST_P(Breakdown, ToleranceBelowWhatCanBeReached) {
  System const a = System::problem(problem("poisson2d", 9, 7, 1));
  auto const b = random_vector(a.rows(), 3);
  for (double rtol : {0.0, 1e-20}) {
    Setting p = setting();
    p.solve.rtol = rtol;
    auto const e = solve_on_threads(a, b, p);
    EXPECT_EQ(e.result.status, Status::stagnated);
    EXPECT_LE(residual_of(a, b, e.x), 1e-11 * norm(b));
  }
}

// Near the last digits, and where products of A underflow, recurrences lose signs; A is what it is.
TEST_P(DefiniteBreakdown, ADefiniteMatrixIsNotCalledIndefinite) {
  for (double scale : {1.0, 1e-170, 1e-200}) {
    System a = System::path(60);
    for (double& value : a.value) value *= scale;
    for (unsigned seed : {2, 4, 5}) {
      auto const b = random_vector(a.rows(), seed);
      Setting p = setting();
      p.solve.rtol = 1e-13;
      p.solve.max_iterations = 150;
      auto const e = solve_on_threads(a, b, p);
      EXPECT_NE(e.result.status, Status::indefinite_matrix) << scale << ' ' << seed << e.result.message;
      if (scale == 1) EXPECT_LE(residual_of(a, b, e.x), 1e-11 * norm(b)) << seed << e.result.message;
    }
  }
}

TEST_P(Breakdown, AdviceWhereSquaresOfEntriesUnderflow) {
  System a = System::path(60);
  for (double& value : a.value) value *= 1e-170;
  auto const e = solve_on_threads(a, random_vector(a.rows(), 2), setting());
  Method const method = GetParam().method;
  if (method == Method::cg || method == Method::single_reduction_cg) {  // which square nothing of A
    EXPECT_EQ(e.result.status, Status::converged) << e.result.message;
    return;
  }
  EXPECT_EQ(e.result.message.rfind("Scale the system: entries of A reach some ", 0), 0U) << e.result.message;
}

TEST_P(Breakdown, IterationLimitZero) {
  Setting p = setting();
  p.solve.max_iterations = 0;
  auto e = solve_on_threads(System::path(4), {1, 2, 3, 4}, {1, 1, 1, 1}, p);
  EXPECT_EQ(e.result.status, Status::iteration_limit);
  EXPECT_EQ(e.result.iterations, 0);
  EXPECT_EQ(e.x, (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(e.result.true_residual, std::sqrt(0.0 + 4 + 9 + 9));  // b - A x = (0, 2, 3, 3)
  e = solve_on_threads(System::path(4), {1, 0, 0, 1}, {1, 1, 1, 1}, p);
  EXPECT_EQ(e.result.status, Status::converged);
}

TEST_P(DefiniteBreakdown, IterationLimitOne) {  // alpha = 2 / 2, x = p = b
  Setting p = setting();
  p.solve.max_iterations = 1;
  auto const e = solve_on_threads(System::path(4), {0, 1, 1, 0}, p);
  EXPECT_EQ(e.result.status, Status::iteration_limit);
  EXPECT_EQ(e.result.iterations, 1);
  EXPECT_EQ(e.x, (std::vector<double>{0, 1, 1, 0}));
  EXPECT_EQ(e.result.true_residual, std::sqrt(2.0));  // b - A x = (1, 0, 0, 1)
  EXPECT_EQ(e.result.residual_history, (std::vector<double>{std::sqrt(2.0), std::sqrt(2.0)}));
}

TEST_P(Breakdown, DisconnectedGraph) {  // every rank alone, or with no neighbour for some rows
  System a;
  for (std::int64_t i = 0; i < 8; i += 2) {
    a.row({{i, 2}, {i + 1, -1}});
    a.row({{i, -1}, {i + 1, 2}});
  }
  std::vector<double> const x{1, 2, 3, 4, 5, 6, 7, 8};
  Setting p = setting();
  p.solve.rtol = 1e-14;
  auto const e = solve_on_threads(a, a.times(x), p);
  EXPECT_EQ(e.result.status, Status::converged);
  EXPECT_LE(e.result.iterations, 3);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(e.x[i], x[i], 1e-12);
}

TEST_P(SymmetricBreakdown, IndefinitePreconditioner) {
  System a = System::path(6);
  for (double diagonal : {-2.0, 0.0}) {
    a.at(5, 5) = diagonal;
    for (auto kind : {PreconditionerKind::jacobi, PreconditionerKind::block_jacobi}) {
      Setting p = setting();
      p.solve.preconditioner = kind;
      auto const e = solve_on_threads(a, std::vector<double>(6, 1.0), {9, 9, 9, 9, 9, 9}, p);
      if (facts_of(p.solve.method).demands == Demands::symmetric) {  // which takes absolute values
        EXPECT_EQ(e.result.status, Status::converged) << e.result.message;
        continue;
      }
      EXPECT_EQ(e.result.status, Status::indefinite_preconditioner);
      EXPECT_NE(e.result.message.find("row 6"), std::string::npos) << e.result.message;
      EXPECT_EQ(e.x, std::vector<double>(6, 9.0));
    }
  }
}

TEST_P(SymmetricBreakdown,
       IndefiniteDiagonalBlock) {  // positive diagonal, but det of the second block = 1 - 4
  Setting p = setting();
  p.ranks = 1;
  p.matrix.block = 2;
  p.solve.preconditioner = PreconditionerKind::block_jacobi;
  System const a = System::dense({{4, 0, 0, 0}, {0, 4, 0, 0}, {0, 0, 1, 2}, {0, 0, 2, 1}});
  auto const e = solve_on_threads(a, {1, 1, 1, 1}, p);
  EXPECT_EQ(e.result.status, Status::indefinite_preconditioner);
  EXPECT_NE(e.result.message.find("row 3"), std::string::npos) << e.result.message;
}

// Products of such entries are off by as much as they are large, where nothing enlarges what is multiplied.
TEST_P(Breakdown, DenormalMatricesAreNotTakenForUnsymmetric) {
  if (!facts_of(setting().solve.method).needs_symmetric()) return;
  System a = System::path(30), bent = a;
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    for (std::int64_t j = std::max<std::int64_t>(0, i - 1); j < std::min(a.rows(), i + 2); ++j) {
      a.at(i, j) = (i == j ? 9e-320 : 1e-320) + 5e-324 * static_cast<double>((i + j) % 7);
      bent.at(i, j) = a.at(i, j) + (i < j ? 1e-321 : 0.0);
    }
  }
  EXPECT_NO_THROW(solve_on_threads(a, std::vector<double>(30, 1e-20), setting()));
  refuse(bent, setting(), ErrorCode::bad_input);
}

// r = (1, 1e-6): alpha = 1 / (1 + 1e14 1e-12) = 1 / 101, which throws the second entry to -1e-6 1e14 / 101.
TEST_P(DefiniteBreakdown, GrowthOfABadlyScaledSystemIsNoDivergence) {
  auto const e = solve_on_threads(System::diagonal({1, 1e14}), {1, 1e-6}, setting());
  EXPECT_EQ(e.result.status, Status::converged) << e.result.message;
  EXPECT_NEAR(e.x[0], 1, 1e-7);
  EXPECT_NEAR(e.x[1], 1e-20, 1e-22);
}

TEST_P(DefiniteBreakdown, DivergedWhereTheLimitSaysSo) {
  Setting p = setting();
  p.solve.divergence_limit = 1e5;
  auto const e = solve_on_threads(System::diagonal({1, 1e14}), {1, 1e-6}, p);
  EXPECT_EQ(e.result.status, Status::diverged);
  EXPECT_EQ(e.result.iterations, 1);
  EXPECT_NEAR(e.result.true_residual, 1e8 / 101, 1);
  EXPECT_NEAR(e.x[0], 1.0 / 101, 1e-12);
}

// A = 1 + S with S' = -S: p' A p = |p|^2 is positive, alpha = 1, and r becomes -S r, 1e11 times as large.
TEST_P(DefiniteBreakdown, DivergedOfWhatIsNotSymmetric) {
  Setting p = setting();
  p.solve.check_symmetry = false;
  auto const e = solve_on_threads(System::dense({{1, 1e11}, {-1e11, 1}}), {1, 0}, p);
  EXPECT_EQ(e.result.status, Status::diverged);
  EXPECT_EQ(e.result.iterations, 1);
  EXPECT_EQ(e.result.true_residual, 1e11);
}

TEST_P(Breakdown, DivergenceLimitsThatMeanNothing) {
  for (double limit : {0.5, -1.0, 1e101, infinity, nan}) {
    Setting p = setting();
    p.solve.divergence_limit = limit;
    refuse(System::diagonal({1, 2}), p, ErrorCode::usage);
  }
}

TEST(Function, PreconditionerThatIsNotPositive) {
  for (double factor : {-1.0, 0.0}) {
    for (int ranks : {1, 3}) {
      Setting p;
      p.ranks = ranks;
      p.solve.preconditioner = PreconditionerKind::function;
      auto const e =
          solve_on_threads(System::path(6), std::vector<double>(6, 1.0), p, [&](int rank, SolveOptions& o) {
            std::size_t const rows =
                static_cast<std::size_t>(piece(rank + 1, ranks, 6) - piece(rank, ranks, 6));
            o.preconditioner_function = [rows, factor](double const* r, double* z) {
              for (std::size_t i = 0; i < rows; ++i) z[i] = factor * r[i];
            };
          });
      EXPECT_EQ(e.result.status, Status::indefinite_preconditioner);
      EXPECT_EQ(e.result.iterations, 0);
    }
  }
}

TEST(Function, PreconditionerThatIsNotFinite) {
  Setting p;
  p.solve.preconditioner = PreconditionerKind::function;
  auto const e = solve_on_threads(System::path(2), {1.0, 1.0}, p, [](int, SolveOptions& o) {
    o.preconditioner_function = [](double const*, double* z) { z[0] = z[1] = nan; };
  });
  EXPECT_EQ(e.result.status, Status::not_finite);
}

}  // namespace
}  // namespace hostless::test
