#pragma once

#include <cstdint>

#include "hostless/base/host_device.hpp"

namespace hostless {

/// Maps block rows to (slice, accumulator, slot): block row = first(slice) + slot * accumulators +
/// accumulator. A block row is `block` consecutive rows.
///
/// Data of the plan, never chosen by a run: the order of every sum follows from it (docs/decisions/0001).
struct Tiling {
  std::int64_t block_rows = 0;  ///< owned rows / block
  int block = 1;                ///< rows of a block row: the block size found in the matrix, else 1
  int slices = 264;             ///< 132 blocks of 512 threads, two slices each
  /// w accumulators of a row, a power of two: product k goes to accumulator k mod w, and they are combined by
  /// the tree of all sums. More than 1 is for long rows that w threads of a GPU share.
  int threads_per_row = 1;
  static constexpr int accumulators = 256;
  static constexpr int most_threads_per_row = 32;  ///< threads of a warp

  /// Slices of 64 block rows or more begin at multiples of so many: a row then lies in a cache line, a vector and a group
  /// of sliced ELL as its accumulator does, whatever the slice.
  static constexpr int aligned = 32;
  HOSTLESS_HOST_DEVICE bool is_aligned() const { return block_rows >= std::int64_t{2 * aligned} * slices; }
  /// First block row of slice s; first(slices) == block_rows.
  HOSTLESS_HOST_DEVICE std::int64_t first(int s) const {
    std::int64_t const even = block_rows * s / slices;
    return is_aligned() && s < slices ? (even + aligned - 1) / aligned * aligned : even;
  }
  /// The slice of a block row.
  HOSTLESS_HOST_DEVICE int slice_of(std::int64_t block_row) const {
    auto slice = static_cast<int>(block_row * slices / block_rows);  // or one after or before, where rounded
    if (slice > 0) --slice;
    while (first(slice + 1) <= block_row) ++slice;
    return slice;
  }
  HOSTLESS_HOST_DEVICE std::int64_t rows() const { return block_rows * block; }
  /// 1, 2, 4, 8, 16 or 32.
  static constexpr bool has_threads_per_row(int w) {
    return w >= 1 && w <= most_threads_per_row && (w & (w - 1)) == 0;
  }
};

}  // namespace hostless
