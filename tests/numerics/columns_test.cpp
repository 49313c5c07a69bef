// Several right-hand sides at once on the processor, in every run.
#include "columns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "hostless/base/error.hpp"

namespace hostless::test {
namespace {

struct Case {
  Method method;
  RunChoice run;
};
std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (Method const method : all_methods())
    for (RunChoice const& run : all_runs()) all.push_back({method, run});
  return all;
}
class RhsColumns : public testing::TestWithParam<Case> {
 protected:
  Setting setting(int ranks) const {
    Setting s;
    s.ranks = ranks;
    s.aligned = true;
    s.solve.method = GetParam().method;
    use(s, GetParam().run);
    return s;
  }
};
INSTANTIATE_TEST_SUITE_P(All, RhsColumns, testing::ValuesIn(all_cases()), [](auto const& one) {
  std::string text = std::string(name(one.param.method)) + "_" + one.param.run.name;
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
});

TEST_P(RhsColumns, EachHasTheBitsThatItHasAlone) {
  System const grid = System::problem(problem("poisson7", 7, 6, 9)),
               blocks = System::problem(problem("elasticity-hex8", 4, 3, 3));
  for (System const* a : {&grid, &blocks}) {
    for (int const ranks : {1, 3}) {
      for (PreconditionerKind const kind : {PreconditionerKind::none, PreconditionerKind::block_jacobi}) {
        Setting s = setting(ranks);
        s.solve.preconditioner = kind;
        std::string const what =
            (a == &grid ? "grid, " : "blocks, ") + std::to_string(ranks) + " ranks, " + name(kind);
        expect_as_alone(*a, random_columns(a->rows(), ranks == 1 ? 4 : 3), s, what);
      }
    }
  }
}

TEST_P(RhsColumns, EachEndsByItself) {
  System const a = System::problem(problem("poisson2d", 16, 15, 1));
  Columns const columns = columns_of_all_endings(a);
  for (int const ranks : {1, 2}) {
    Setting s = setting(ranks);
    expect_as_alone(a, columns, s, "to the end");
    s.solve.max_iterations = 9;
    expect_as_alone(a, columns, s, "with a limit");
    s.solve.max_iterations = -1;
    s.solve.rtol = 1e-17;  // beyond the digits: restarts
    expect_as_alone(a, random_columns(a.rows(), 2), s, "beyond the digits");
  }
}

TEST(Columns, ChebyshevPolynomialsRaiseTheirBoundOneByOne) {
  System const a = System::problem(problem("poisson2d", 12, 11, 1));
  Setting s;
  s.ranks = 2;
  s.aligned = true;
  s.solve.preconditioner = PreconditionerKind::chebyshev;
  for (double const upper : {0.0, 0.3}) {
    s.solve.chebyshev.upper = upper;
    expect_as_alone(a, random_columns(a.rows(), 3), s, "upper " + std::to_string(upper));
  }
}

TEST(Columns, FormatsOfEveryKind) {
  System const grid = System::problem(problem("poisson7", 8, 7, 6)),
               blocks = System::problem(problem("elasticity-hex8", 5, 4, 4));
  for (auto const format : {FormatRequest::Kind::csr, FormatRequest::Kind::bsr, FormatRequest::Kind::sell}) {
    for (std::int64_t const reach : {std::int64_t{0}, FormatRequest::automatic}) {
      for (System const* a : {&grid, &blocks}) {
        if (format == FormatRequest::Kind::bsr && a == &grid) continue;
        Setting s;
        s.ranks = 2;
        s.aligned = true;
        s.matrix.format.format = format;
        s.matrix.format.half_reach = reach;
        expect_as_alone(*a, random_columns(a->rows(), 5), s, name(static_cast<Format>(0)));
      }
    }
  }
}

TEST(Columns, TheWholeTellsOfTheFirstThatDidNotConverge) {
  System const a = System::path(40);
  Columns columns = random_columns(40, 3);
  Setting s;
  ColumnsEnding ending = solve_together(a, columns, s);
  EXPECT_EQ(ending.whole.status, Status::converged);
  std::int64_t most = 0;
  double largest = 0;
  for (Result const& one : ending.whole.columns) {
    most = std::max(most, one.iterations);
    largest = std::max(largest, one.true_relative_residual);
  }
  EXPECT_EQ(ending.whole.iterations, most);
  EXPECT_EQ(ending.whole.true_relative_residual, largest);
  columns.b[1][3] = std::numeric_limits<double>::quiet_NaN();
  ending = solve_together(a, columns, s);
  EXPECT_EQ(ending.whole.status, Status::not_finite);
  EXPECT_EQ(ending.whole.message.rfind("column 2: ", 0), 0U) << ending.whole.message;
}

void expect_refused(SolveOptions const& options, std::string const& text) {
  System const a = System::path(8);
  Setting s;
  s.solve = options;
  try {
    solve_on_threads(a, std::vector<double>(8, 1.0), s);
    FAIL() << "taken: " << text;
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), ErrorCode::usage);
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

TEST(Columns, WhatIsOfOneRightHandSideIsRefused) {
  SolveOptions options;
  options.rhs_columns = 0;
  expect_refused(options, "0 right-hand sides at once (it is from 1 to 8)");
  options.rhs_columns = 9;
  expect_refused(options, "9 right-hand sides at once (it is from 1 to 8)");
  options.rhs_columns = 2;
  options.null_space_constant = true;
  expect_refused(options, "a null space with 2 right-hand sides at once");
  options.null_space_constant = false;
  options.checkpoint_file = "nowhere";
  options.checkpoint_every = 3;
  expect_refused(options, "a checkpoint with 2 right-hand sides at once");
  options.checkpoint_file.clear();
  options.preconditioner = PreconditionerKind::function;
  options.preconditioner_function = [](double const*, double*) {};
  expect_refused(options, "a preconditioner function with 2 right-hand sides at once");
}

TEST(Columns, AnOperatorThatIsAFunctionIsCalledForEach) {
  std::int64_t const n = 20;
  System const a = System::path(n);
  auto const apply = [&](double const* x, double* y) {
    std::vector<double> const from(x, x + n);
    auto const to = a.times(from);
    std::copy(to.begin(), to.end(), y);
  };
  auto const transport = single_transport();
  Matrix const matrix = Matrix::from_function(*transport, 0, n, apply);
  SolveOptions options;
  options.rhs_columns = 3;
  Solver solver(matrix, options);
  solver.manufacture(7);
  Result const result = solver.solve();
  EXPECT_EQ(result.status, Status::converged) << result.message;
  EXPECT_LT(solver.manufactured_error(7), 1e-6);
}

}  // namespace
}  // namespace hostless::test
