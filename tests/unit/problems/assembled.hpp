#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hostless/problems/problems.hpp"

namespace hostless::test {

/// A whole small matrix, as the ranks one after the other made it.
struct Assembled {
  RowPanel rows;
  std::int64_t size() const { return static_cast<std::int64_t>(rows.offset.size()) - 1; }
  std::int64_t entries() const { return rows.offset.back(); }
  /// Position of (i, j) or -1.
  std::int64_t find(std::int64_t i, std::int64_t j) const {
    auto const from = rows.column.begin() + rows.offset[i], to = rows.column.begin() + rows.offset[i + 1];
    auto const at = std::lower_bound(from, to, j);
    return at != to && *at == j ? at - rows.column.begin() : -1;
  }
  double at(std::int64_t i, std::int64_t j) const {
    std::int64_t const k = find(i, j);
    return k < 0 ? 0.0 : rows.value[k];
  }
  std::vector<double> times(std::vector<double> const& x) const {
    std::vector<double> y(x.size(), 0.0);
    for (std::int64_t i = 0; i < size(); ++i)
      for (std::int64_t k = rows.offset[i]; k < rows.offset[i + 1]; ++k)
        y[i] += rows.value[k] * x[rows.column[k]];
    return y;
  }
  /// x' A x
  double energy(std::vector<double> const& x) const {
    auto const y = times(x);
    double sum = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
    return sum;
  }
};

inline Assembled assemble(ProblemOptions const& options, int ranks = 1, std::int64_t panel_rows = 1000) {
  Assembled all;
  all.rows.clear();
  RowPanel panel;
  for (int rank = 0; rank < ranks; ++rank) {
    auto const source = make_problem(options, ranks, rank);
    for (std::int64_t row = source->first_row(); row < source->last_row(); row += panel_rows) {
      std::int64_t const count = std::min(panel_rows, source->last_row() - row);
      source->panel(row, count, panel);
      for (std::int64_t k = 0; k < count; ++k)
        all.rows.offset.push_back(all.entries() + panel.offset[k + 1] - panel.offset[k]);
      all.rows.column.insert(all.rows.column.end(), panel.column.begin(), panel.column.end());
      all.rows.value.insert(all.rows.value.end(), panel.value.begin(), panel.value.end());
    }
  }
  return all;
}

inline ProblemOptions problem(std::string kind, std::int64_t nx, std::int64_t ny = 1, std::int64_t nz = 1) {
  ProblemOptions options;
  options.kind = std::move(kind);
  options.nx = nx;
  options.ny = ny;
  options.nz = nz;
  return options;
}

inline ProblemOptions with(ProblemOptions options, Boundary boundary, double contrast) {
  options.boundary = boundary;
  options.contrast = contrast;
  return options;
}

/// One small example of every kind, sides all different, rows not a multiple of any panel size used.
inline std::vector<ProblemOptions> small_problems() {
  return {problem("poisson1d", 37),
          problem("poisson2d", 7, 9),
          problem("poisson7", 5, 4, 6),
          problem("poisson27", 4, 5, 6),
          problem("poisson2d-tri", 8, 7),
          problem("elasticity-hex8", 3, 4, 5),
          problem("elasticity-tet4", 4, 3, 5),
          problem("monodomain", 5, 6, 4),
          problem("circuit", 9, 11),
          problem("springs2d-tri", 4, 5),
          problem("springs3d-tet4", 3, 4, 2),
          problem("springs3d-hubs", 3, 2, 6)};
}

/// Dense Cholesky; the smallest pivot divided by its diagonal entry, or a value <= 0 where it breaks down.
inline double smallest_pivot(Assembled const& a) {
  std::int64_t const n = a.size();
  std::vector<double> l(static_cast<std::size_t>(n * n), 0.0);
  double smallest = 1.0;
  for (std::int64_t j = 0; j < n; ++j) {
    double pivot = a.at(j, j);
    for (std::int64_t k = 0; k < j; ++k) pivot -= l[j * n + k] * l[j * n + k];
    smallest = std::min(smallest, pivot / a.at(j, j));
    if (!(pivot > 0.0)) return std::min(smallest, 0.0);
    l[j * n + j] = std::sqrt(pivot);
    for (std::int64_t i = j + 1; i < n; ++i) {
      double sum = a.at(i, j);
      for (std::int64_t k = 0; k < j; ++k) sum -= l[i * n + k] * l[j * n + k];
      l[i * n + j] = sum / l[j * n + j];
    }
  }
  return smallest;
}

}  // namespace hostless::test
