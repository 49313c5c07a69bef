#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "hostless/plan/boxes.hpp"

namespace hostless {

/// One array over a box and a halo around it, rows of the last axis contiguous; cells are named by their
/// numbers in the whole grid. A row's first cell of the box begins a cache line, or the first one behind those that stay as
/// given: what is stored does then. Not of rows of half a line and less, several of which share one.
class GridArray {
 public:
  GridArray() = default;
  /// Zero everywhere; large ones get their memory where and when they are written first.
  /// given  cells at the beginning of a row that stay so
  /// Errors  environment  no memory
  GridArray(Box const& box, std::array<std::int64_t, 3> halo, std::size_t value_bytes,
            std::int64_t given = 0);
  GridArray(GridArray&&) = default;
  GridArray& operator=(GridArray&&) = default;

  /// Another one of the same cells in the same memory, which lives as long as any of them.
  GridArray of_same_cells() const { return *this; }

  std::byte* at(std::int64_t a, std::int64_t b, std::int64_t c) const {
    return first_ +
           ((a - box_.low[0]) * stride_[0] + (b - box_.low[1]) * stride_[1] + (c - box_.low[2])) * bytes_;
  }
  /// In values; of the last axis 1.
  std::int64_t stride(int axis) const { return stride_[static_cast<std::size_t>(axis)]; }
  std::int64_t value_bytes() const { return bytes_; }
  Box const& box() const { return box_; }
  /// The number, along the last axis, of a cell that begins a cache line.
  std::int64_t line_begin() const { return box_.low[2] + given_; }

 private:
  GridArray(GridArray const&) = default;

  std::shared_ptr<std::byte> memory_;
  std::byte* first_ = nullptr;
  Box box_{};
  std::array<std::int64_t, 3> stride_{1, 1, 1};
  std::int64_t bytes_ = 0, given_ = 0;
};

/// Calls row(cells, a, b) for every row of a box: `cells` is where it begins in `array`.
template <class Row>
void each_row(GridArray const& array, Box const& box, Row&& row) {
  for (std::int64_t a = box.low[0]; a < box.high[0]; ++a)
    for (std::int64_t b = box.low[1]; b < box.high[1]; ++b) row(array.at(a, b, box.low[2]), a, b);
}

}  // namespace hostless
