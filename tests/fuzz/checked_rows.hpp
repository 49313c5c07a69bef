#pragma once
// What holds of every matrix that a reader accepts.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "hostless/files/stored_rows.hpp"

namespace hostless::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

inline std::string checked(StoredRows const& rows) {
  std::int64_t const n = rows.global_rows();
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t k = rows.row_begin(row); k < rows.row_begin(row + 1); ++k) {
      std::int64_t const column = rows.column_at(k);
      require(column >= 0 && column < n && std::isfinite(rows.value_at(k)));
      require(k == rows.row_begin(row) || rows.column_at(k - 1) < column);
      require(rows.find(column, row).value_or(0.0) == rows.value_at(k));  // a zero needs no mirror
    }
  }
  return "read";
}

}  // namespace hostless::fuzz
