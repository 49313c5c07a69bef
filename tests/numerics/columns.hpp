#pragma once
// Several right-hand sides at once: the oracle of each is the solve of it alone, whose x, residual history,
// ending and counts it must have in every bit, whatever the others do beside it.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "systems.hpp"

namespace hostless::test {

/// Column after column, each in global order.
struct Columns {
  std::vector<std::vector<double>> b, x0;
  int count() const { return static_cast<int>(b.size()); }
};

struct ColumnsEnding {
  Result whole;
  std::vector<std::vector<double>> x;
};

inline ColumnsEnding solve_together(System const& a, Columns const& columns, Setting setting) {
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

/// at_once: where they are solved for together; `setting`: where each of them alone.
inline void expect_as_alone(System const& a, Columns const& columns, Setting const& setting,
                            Setting const& at_once, std::string const& what) {
  ColumnsEnding const together = solve_together(a, columns, at_once);
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
inline void expect_as_alone(System const& a, Columns const& columns, Setting const& setting,
                            std::string const& what) {
  expect_as_alone(a, columns, setting, setting, what);
}

inline Columns random_columns(std::int64_t rows, int count) {
  Columns columns;
  for (int c = 0; c < count; ++c) {
    columns.b.push_back(random_vector(rows, 17 + static_cast<unsigned>(c)));
    columns.x0.emplace_back(columns.b.back().size(), 0.0);
  }
  return columns;
}

/// Ends at once, early, late, by its limit or not at all, beside each other.
inline Columns columns_of_all_endings(System const& a) {
  auto const rows = static_cast<std::size_t>(a.rows());
  Columns columns = random_columns(a.rows(), 8);
  columns.b[0].assign(rows, 0.0);  // x = 0
  std::fill(columns.x0[0].begin(), columns.x0[0].end(), 3.0);
  columns.b[1] = a.times(columns.x0[1] = random_vector(a.rows(), 5));  // the guess solves it
  for (double& entry : columns.b[2]) entry *= 1e-30;
  columns.b[3][7] = std::numeric_limits<double>::quiet_NaN();
  columns.b[4].assign(rows, 0.0);
  columns.b[4][3] = 1;
  for (double& entry : columns.b[5]) entry *= 1e200;  // its square overflows
  columns.x0[6][1] = std::numeric_limits<double>::infinity();
  return columns;
}

}  // namespace hostless::test
