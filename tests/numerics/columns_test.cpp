// Several right-hand sides at once: the oracle of each is the solve of it alone, whose x, residual history, ending
// and counts it must have in every bit, whatever the others do beside it.
#include <gtest/gtest.h>

#include <algorithm>

#include <limits>

#include "hostless/base/error.hpp"
#include "systems.hpp"

namespace hostless::test {
namespace {

/// Column after column, each in global order.
struct Columns {
  std::vector<std::vector<double>> b, x0;
  int count() const { return static_cast<int>(b.size()); }
};

struct ColumnsEnding {
  Result whole;
  std::vector<std::vector<double>> x;
};

ColumnsEnding solve_together(System const& a, Columns const& columns, Setting setting) {
  ColumnsEnding ending;
  ending.x = columns.x0;
  setting.solve.rhs_columns = columns.count();
  run_with_threads_transport(setting.ranks, [&](Transport& transport) {
    int const rank = transport.group().rank();
    Share const mine = share_of(a, setting.ranks, rank, setting.aligned);
    Matrix const matrix =
        Matrix::from_rows(transport, mine.first, mine.offset, mine.column, mine.value, setting.matrix);
    Solver solver(matrix, setting.solve);
    std::vector<double> b, x;
    auto const part = [&](std::vector<double> const& v) {
      return std::span(v).subspan(static_cast<std::size_t>(mine.first),
                                  static_cast<std::size_t>(mine.last - mine.first));
    };
    for (int c = 0; c < columns.count(); ++c) {
      auto const of_b = part(columns.b[static_cast<std::size_t>(c)]),
                 of_x = part(columns.x0[static_cast<std::size_t>(c)]);
      b.insert(b.end(), of_b.begin(), of_b.end());
      x.insert(x.end(), of_x.begin(), of_x.end());
    }
    Result const result = solver.solve(b, x);
    auto const rows = static_cast<std::ptrdiff_t>(mine.last - mine.first);
    for (int c = 0; c < columns.count(); ++c)
      std::copy_n(x.begin() + c * rows, rows, ending.x[static_cast<std::size_t>(c)].begin() + mine.first);
    if (rank == 0) ending.whole = result;
  });
  return ending;
}

void expect_as_alone(System const& a, Columns const& columns, Setting const& setting,
                     std::string const& what) {
  ColumnsEnding const together = solve_together(a, columns, setting);
  ASSERT_EQ(together.whole.columns.size(), columns.b.size()) << what;
  for (std::size_t c = 0; c < columns.b.size(); ++c) {
    Ending const alone = solve_on_threads(a, columns.b[c], columns.x0[c], setting);
    Result const &one = alone.result, &other = together.whole.columns[c];
    std::string const which = what + ", column " + std::to_string(c);
    EXPECT_EQ(other.status, one.status) << which << ": " << other.message;
    EXPECT_EQ(other.iterations, one.iterations) << which;
    EXPECT_EQ(other.restarts, one.restarts) << which;
    EXPECT_EQ(other.message, one.message) << which;
    EXPECT_TRUE(same_bits({other.true_residual, other.rhs_norm}, {one.true_residual, one.rhs_norm})) << which;
    EXPECT_TRUE(same_bits(other.residual_history, one.residual_history)) << which;
    EXPECT_TRUE(same_bits(together.x[c], alone.x)) << which;
  }
}

Columns random_columns(std::int64_t rows, int count) {
  Columns columns;
  for (int c = 0; c < count; ++c) {
    columns.b.push_back(random_vector(rows, 17 + static_cast<unsigned>(c)));
    columns.x0.emplace_back(columns.b.back().size(), 0.0);
  }
  return columns;
}

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

// Ends at once, early, late, by its limit or not at all, beside each other.
TEST_P(RhsColumns, EachEndsByItself) {
  System const a = System::problem(problem("poisson2d", 16, 15, 1));
  auto const rows = static_cast<std::size_t>(a.rows());
  Columns columns = random_columns(a.rows(), 8);
  columns.b[0].assign(rows, 0.0);                     // x = 0
  std::fill(columns.x0[0].begin(), columns.x0[0].end(), 3.0);
  columns.b[1] = a.times(columns.x0[1] = random_vector(a.rows(), 5));  // the guess solves it
  for (double& entry : columns.b[2]) entry *= 1e-30;
  columns.b[3][7] = std::numeric_limits<double>::quiet_NaN();
  columns.b[4].assign(rows, 0.0);
  columns.b[4][3] = 1;
  for (double& entry : columns.b[5]) entry *= 1e200;  // its square overflows
  columns.x0[6][1] = std::numeric_limits<double>::infinity();
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
