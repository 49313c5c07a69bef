#pragma once
// Rows that lie in the arrays of a caller, as compressed sparse rows.

#include <cstdint>
#include <memory>
#include <optional>

#include "hostless/base/rows.hpp"

namespace hostless::python {

/// Compressed sparse rows in somebody else's memory; columns rise inside each row. Offsets and columns have
/// one type, int32 or int64, as scipy has them.
struct Arrays {
  std::int64_t columns = 0;    ///< of the whole matrix
  std::int64_t first_row = 0;  ///< of the row that offsets[0] belongs to
  std::int64_t rows = 0;       ///< that lie here
  bool wide = false;           ///< int64
  void const* offset = nullptr;
  void const* column = nullptr;
  double const* value = nullptr;

  std::int64_t offset_at(std::int64_t row) const { return at(offset, row); }
  std::int64_t column_at(std::int64_t k) const { return at(column, k); }

 private:
  std::int64_t at(void const* array, std::int64_t k) const {
    return wide ? static_cast<std::int64_t const*>(array)[k] : static_cast<std::int32_t const*>(array)[k];
  }
};

/// Rows [first, last) of the whole matrix; the arrays must outlive it.
std::unique_ptr<RowSource> rows_of(Arrays const& arrays, std::int64_t first, std::int64_t last);

/// What is wrong with arrays that scipy would not have made, or that no square matrix has.
/// Errors  bad_input  offsets that fall, columns out of range or not rising
void check_arrays(Arrays const& arrays);

/// How far a square matrix is from its mirror image.
struct Mirror {
  double difference = 0;             ///< largest |a_ij - a_ji| / max(|a_ij|, |a_ji|, sqrt|a_ii a_jj|)
  std::int64_t row = 0, column = 0;  ///< where
  double value = 0, other = 0;       ///< a_ij, a_ji (0 where nothing is stored)
};

/// Compares every entry with its mirror; no difference at all: empty. All rows must be there. One pass over
/// the matrix by all processors, and a search in a row for each entry.
std::optional<Mirror> compare_with_mirror(Arrays const& arrays);

}  // namespace hostless::python
