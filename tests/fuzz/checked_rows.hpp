#pragma once
// What holds of every matrix that a reader accepts.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "hostless/files/stored_rows.hpp"

namespace hostless::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

// Up to rounding, which is no less than that of the smallest normal number, as readers take matrices where nobody says
// otherwise; a zero needs no mirror.
inline bool is_mirrored(StoredRows const& rows, std::int64_t row, std::int64_t column, double value) {
  double const mirror = rows.find(column, row).value_or(0.0);
  if (mirror == value) return true;
  auto const root = [&](std::int64_t r) { return std::sqrt(std::fabs(rows.find(r, r).value_or(0.0))); };
  double const size = std::max(
      {std::fabs(value), std::fabs(mirror), root(row) * root(column), std::numeric_limits<double>::min()});
  return std::fabs(value - mirror) / size <= symmetry_rounding;
}

inline std::string checked(StoredRows const& rows) {
  std::int64_t const n = rows.global_rows();
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t k = rows.row_begin(row); k < rows.row_begin(row + 1); ++k) {
      std::int64_t const column = rows.column_at(k);
      require(column >= 0 && column < n && std::isfinite(rows.value_at(k)));
      require(k == rows.row_begin(row) || rows.column_at(k - 1) < column);
      require(is_mirrored(rows, row, column, rows.value_at(k)));
    }
  }
  return "read";
}

}  // namespace hostless::fuzz
