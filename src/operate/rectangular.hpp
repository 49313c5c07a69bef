#pragma once
// Rows of one numbering over columns of another: what leads from a fine vector to a coarse one and back.

#include <cstdint>
#include <vector>

#include "hostless/base/host_device.hpp"
#include "hostless/operate/local_matrix.hpp"

namespace hostless {

/// What the rows of a RectangularMatrix multiply: a vector of another numbering, its ghosts around it.
struct ColumnSpace {
  std::int64_t owned = 0, ghosts = 0, ghosts_below = 0;
};

/// One rank's rows by their entries (CSR), over a vector that is not numbered as they are. A row adds its
/// products in rising local column, as all matrices do (docs/decisions/0001).
class RectangularMatrix {
 public:
  RectangularMatrix() = default;
  /// rows     all of them, columns seen from the first owned entry of the vector, strictly rising in a row
  /// tiling   of the rows
  /// Errors   usage  sizes that do not fit together; columns out of range or not rising (with the row)
  RectangularMatrix(LocalPanel rows, Tiling const& tiling, ColumnSpace const& columns);

  /// As LocalMatrix::multiply; no ring is needed, and any row may come first.
  HOSTLESS_HOST_DEVICE void multiply(int, std::int64_t first_block_row, int block_rows, double const* x,
                                     double* out, double*) const noexcept {
    std::int64_t const first = first_block_row * block_, count = std::int64_t{block_rows} * block_;
    std::int64_t const* const offset = offset_.data() + first;
    for (std::int64_t i = 0; i < count; ++i) {
      double sum = 0.0;
      for (std::int64_t k = offset[i]; k < offset[i + 1]; ++k)
        sum =
            __builtin_fma(value_[static_cast<std::size_t>(k)], x[column_[static_cast<std::size_t>(k)]], sum);
      out[i] = sum;
    }
  }
  /// Which slices read ghosts, and which of them, as LocalMatrix says it: single ones, not block rows.
  SweepOrder const& order() const { return order_; }
  GhostReads const& ghost_reads() const { return reads_; }
  std::int64_t entries() const { return static_cast<std::int64_t>(value_.size()); }
  /// Bytes that one product with all rows reads; vectors not counted.
  std::int64_t bytes_per_sweep() const {
    return static_cast<std::int64_t>(offset_.size() * sizeof(std::int64_t)) + entries() * 12;
  }

 private:
  int block_ = 1;
  std::vector<std::int64_t> offset_;
  std::vector<std::int32_t> column_;
  std::vector<double> value_;
  SweepOrder order_;
  GhostReads reads_;
};

}  // namespace hostless
