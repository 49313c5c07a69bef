#pragma once
// Where one GPU has the cells of its part: own rows of the first axis, and halos where others own what comes
// before and after.

#include <vector>

#include "stencil/gpu/cells.hpp"
#include "stencil/gpu/instance.hpp"

namespace hostless::gpu {

/// Rows of a part's arrays: halo, own ones, halo.
struct PartRows {
  std::int64_t first = 0;  ///< of the arrays, as a row of the grid: below 0 where a halo is beyond its begin
  std::int64_t below = 0, own = 0, above = 0;
  std::int64_t all() const { return below + own + above; }
  /// deep: rows of a halo. A grid that wraps has halos at its ends too, unless it is in one part.
  static PartRows of(Grid const& grid, std::vector<StencilPart> const& parts, std::size_t which,
                     std::int64_t deep) {
    StencilPart const& part = parts[which];
    bool const wraps = parts.size() > 1 && grid.boundary[0] == GridBoundary::periodic;
    PartRows rows;
    rows.below = wraps || which > 0 ? deep : 0;
    rows.above = wraps || which + 1 < parts.size() ? deep : 0;
    rows.own = part.high - part.low;
    rows.first = part.low - rows.below;
    return rows;
  }
};

/// Two arrays of each field, one of each coefficient.
class CellMemory {
 public:
  /// grid: with the rows of this part
  CellMemory(Grid const& grid, StencilInstance const& instance)
      : grid_(grid), fields_(instance.fields), value_bytes_(static_cast<int>(instance.text.value_bytes)) {
    constexpr std::int64_t whole = 32;  // cells: rows begin where no transfer is cut
    stride_[1] = (grid_.extent[2] + whole - 1) / whole * whole;
    stride_[0] = stride_[1] * grid_.extent[1];
    std::size_t const bytes =
        static_cast<std::size_t>(stride_[0] * grid_.extent[0]) * static_cast<std::size_t>(value_bytes_);
    for (int k = 0; k < instance.arrays + instance.fields; ++k) {
      memory_.emplace_back(bytes);
      memory_.back().clear();  // what lies beyond a row is copied, and never means anything
    }
  }
  OwnCells now(int array) const {
    return cells(array < fields_ ? array + (swapped_ ? fields_ : 0) : array + fields_);
  }
  OwnCells other(int field) const { return cells(field + (swapped_ ? 0 : fields_)); }
  void swap() { swapped_ = !swapped_; }
  bool swapped() const { return swapped_; }
  StencilArrays arrays(int count) const {
    StencilArrays all;
    for (int k = 0; k < count; ++k) all.in[k] = now(k).data;
    for (int f = 0; f < fields_; ++f) all.out[f] = other(f).data;
    all.stride[0] = stride_[0];
    all.stride[1] = stride_[1];
    return all;
  }
  /// Values of a row of the first axis.
  std::int64_t row_values() const { return stride_[0]; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(memory_.size() * memory_.front().bytes()); }

 private:
  OwnCells cells(int k) const {
    OwnCells found;
    found.data = memory_[static_cast<std::size_t>(k)].data();
    for (std::size_t axis = 0; axis < 3; ++axis) found.extent[axis] = grid_.extent[axis];
    found.stride[0] = stride_[0];
    found.stride[1] = stride_[1];
    found.value_bytes = value_bytes_;
    return found;
  }

  Grid grid_;
  int fields_, value_bytes_;
  std::int64_t stride_[2] = {};
  bool swapped_ = false;
  std::vector<Array<std::byte>> memory_;  ///< fields, their second arrays, coefficients
};

/// `count` rows from one of them on.
inline OwnCells rows_of(OwnCells cells, std::int64_t first, std::int64_t count) {
  cells.data = static_cast<std::byte*>(cells.data) + first * cells.stride[0] * cells.value_bytes;
  cells.extent[0] = count;
  return cells;
}

}  // namespace hostless::gpu
