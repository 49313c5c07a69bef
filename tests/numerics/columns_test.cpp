// Several right-hand sides at once on the processor, in every run.
#include "columns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "hostless/base/error.hpp"
#include "sample.hpp"

namespace hostless::test {
namespace {

struct Case {
  Method method;
  RunChoice run;
};
std::vector<Case> all_cases() {
  std::vector<Case> all;
  std::size_t row = 0;
  for (Method const method : all_methods()) {
    std::size_t number = row++;
    for (RunChoice const& run : all_runs())
      if (is_tried(number++, 3)) all.push_back({method, run});
  }
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
  for (RunChoice const& run : all_runs()) {
    for (int const ranks : {1, 2}) {
      if (ranks * run.threads > 3) continue;  // more threads than a small machine has take half a minute
      Setting s;
      s.ranks = ranks;
      s.aligned = true;
      s.solve.preconditioner = PreconditionerKind::chebyshev;
      use(s, run);
      for (double const upper : {0.0, 0.3}) {
        s.solve.chebyshev.upper = upper;
        expect_as_alone(a, random_columns(a.rows(), 3), s,
                        run.name + ", " + std::to_string(ranks) + " ranks, upper " + std::to_string(upper));
      }
    }
  }
}

TEST(Columns, FormatsOfEveryKind) {
  System const grid = System::problem(problem("poisson7", 8, 7, 6)),
               blocks = System::problem(problem("elasticity-hex8", 5, 4, 4));
  struct Named {
    FormatRequest::Kind format;
    std::string name;
  };
  for (auto const& [format, name] :
       {Named{FormatRequest::Kind::csr, "csr"}, Named{FormatRequest::Kind::bsr, "bsr"},
        Named{FormatRequest::Kind::sell, "sell"}}) {
    for (std::int64_t const reach : {std::int64_t{0}, FormatRequest::automatic}) {
      for (System const* a : {&grid, &blocks}) {
        if (format == FormatRequest::Kind::bsr && a == &grid) continue;
        Setting s;
        s.ranks = 2;
        s.aligned = true;
        s.matrix.format.format = format;
        s.matrix.format.half_reach = reach;
        expect_as_alone(
            *a, random_columns(a->rows(), 5), s,
            name + (reach == 0 ? " in full, " : " by halves, ") + (a == &grid ? "grid" : "blocks"));
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

// What a column moves it moves in its own iterations; the matrix is read in those of any.
TEST(Columns, BytesAreThoseOfColumnsThatWork) {
  System const a = System::problem(problem("poisson2d", 16, 15, 1));
  Setting s;
  s.ranks = 2;
  s.aligned = true;
  Columns columns = random_columns(a.rows(), 2);
  std::int64_t const alone = solve_on_threads(a, columns.b[0], s).result.bytes_per_iteration;
  columns.b[1] = columns.b[0];
  std::int64_t const both = solve_together(a, columns, s).whole.bytes_per_iteration;
  EXPECT_GT(both, alone);
  EXPECT_LT(both, 2 * alone);
  columns.b[1].assign(columns.b[1].size(), 0.0);
  EXPECT_EQ(solve_together(a, columns, s).whole.bytes_per_iteration, alone);
  columns.b[1] = random_columns(a.rows(), 2).b[1];
  columns.x0[1] = solve_together(a, columns, s).x[1];
  columns.x0[1][0] += 1e-6;  // some iterations more
  Result const some = solve_together(a, columns, s).whole;
  auto const share = static_cast<double>(some.columns[1].iterations) / static_cast<double>(some.iterations);
  EXPECT_GT(share, 0);
  EXPECT_LT(share, 1);
  EXPECT_NEAR(static_cast<double>(some.bytes_per_iteration),
              static_cast<double>(alone) + share * static_cast<double>(both - alone), 2);
}

// A solve that begins where the one before ended is a solve: it is told of, once.
TEST(Columns, EverySolveIsObserved) {
  System const a = System::path(20);
  for (int const count : {1, 3}) {
    auto const transport = single_transport();
    Matrix const matrix = Matrix::from_rows(*transport, 0, a.offset, a.column, a.value);
    std::vector<std::vector<std::int64_t>> seen(static_cast<std::size_t>(count));
    SolveOptions options;
    options.rhs_columns = count;
    options.callback = [&](Progress const& progress) {
      seen[static_cast<std::size_t>(progress.column)].push_back(progress.iteration);
      return false;
    };
    Solver solver(matrix, options);
    solver.manufacture(7);
    solver.solve();
    for (int again = 0; again < 3; ++again) {
      for (auto& one : seen) one.clear();
      EXPECT_EQ(solver.solve().iterations, 0);
      for (auto const& one : seen) EXPECT_EQ(one, std::vector<std::int64_t>{0}) << count << ", " << again;
    }
  }
}

// x of an iteration, and not what it still waits for.
TEST(Columns, CallbacksReadTheirX) {
  System const a = System::path(60);
  for (RunKind const kind : {RunKind::host, RunKind::persistent, RunKind::graph}) {
    std::map<std::int64_t, std::vector<double>> alone;
    for (int const count : {1, 3}) {
      auto const transport = single_transport();
      Matrix const matrix = Matrix::from_rows(*transport, 0, a.offset, a.column, a.value);
      SolveOptions options;
      options.rhs_columns = count;
      options.run.kind = kind;
      options.run.threads = kind == RunKind::persistent ? 2 : 1;
      std::int64_t compared = 0;
      options.callback_reads_x = true;
      options.callback = [&](Progress const& progress) {
        std::vector<double> const x(progress.x.begin(), progress.x.end());
        if (count == 1) alone[progress.iteration] = x;
        if (count > 1 && progress.column == 0) {
          EXPECT_EQ(x, alone[progress.iteration]) << name(kind) << ", iteration " << progress.iteration;
          ++compared;
        }
        return false;
      };
      Solver solver(matrix, options);
      solver.manufacture(7);
      solver.solve();
      if (count > 1) EXPECT_GT(compared, 10);
    }
  }
}

// Who does not ask for x is not shown one that would have to be waited for, and changes no bit.
TEST(Columns, CallbacksThatReadNoXSeeNone) {
  System const a = System::path(60);
  for (int const count : {1, 3}) {
    std::vector<std::vector<double>> answers;
    for (bool const reads : {false, true}) {
      auto const transport = single_transport();
      Matrix const matrix = Matrix::from_rows(*transport, 0, a.offset, a.column, a.value);
      SolveOptions options;
      options.rhs_columns = count;
      options.callback_reads_x = reads;
      std::int64_t calls = 0;
      options.callback = [&](Progress const& progress) {
        EXPECT_EQ(progress.x.size(), reads ? 60u : 0u);
        ++calls;
        return false;
      };
      Solver solver(matrix, options);
      solver.manufacture(7);
      Result const result = solver.solve();
      EXPECT_GT(calls, result.iterations);
      answers.emplace_back();
      for (int column = 0; column < count; ++column) {
        auto const x = solver.x(column);
        answers.back().insert(answers.back().end(), x.begin(), x.end());
      }
    }
    EXPECT_EQ(answers[0], answers[1]) << count;
  }
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
  solver.x(0)[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(solver.manufactured_error(7)));  // and not the largest of the others
}

}  // namespace
}  // namespace hostless::test
