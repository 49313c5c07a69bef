#pragma once
// Fills the layout of a generated matrix, one block row a thread; share.impl.hpp does the same for rows of a
// caller. Bytes: those of the layout, written once. The arrays are zero before.

#include "device/runtime.hpp"
#include "operate/device_rows.hpp"
#include "problems/recipe.hpp"

namespace hostless::gpu {

/// The arrays that a view reads, to be written.
struct LayoutArrays {
  double* value = nullptr;  ///< the first one; of diagonals, `origin` values before block row 0
  std::int64_t origin = 0;
  std::uint16_t* narrow = nullptr;
  std::int32_t* wide = nullptr;
  std::int64_t* start = nullptr;  ///< of CSR
  std::int64_t entries = 0;       ///< of CSR: for how many there is room
};

/// The block of a block row on the k-th diagonal, row by row; the block row may lie before the first one.
template <int B>
HOSTLESS_HOST_DEVICE void write_on_diagonal(LayoutArrays const& to, DiagonalsView const& a, int k,
                                            std::int64_t block_row, double const (&block)[B * B]) {
  static_assert(tile_block_rows == 32);
  for (int j = 0; j < B; ++j) {
    for (int c = 0; c < B; ++c) {  // stored column by column
      std::int64_t const at =
          B == 1 ? a.plane[k] * a.stride + block_row
                 : ((block_row >> 5) * a.planes + a.plane[k] + c * B + j) * 32 + (block_row & 31);
      to.value[to.origin + at] = block[j * B + c];
    }
  }
}

/// The block of a block row that `position` says, in its group.
template <int B>
HOSTLESS_HOST_DEVICE void write_in_group(LayoutArrays const& to, DeviceGroup const& group,
                                         SellPosition const& position, std::int64_t column,
                                         double const (&block)[B * B]) {
  std::int64_t const at = group.column + position.before + position.rank;
  if (group.wide != 0) {
    to.wide[at] = static_cast<std::int32_t>(column);
  } else {
    to.narrow[at] = static_cast<std::uint16_t>(column - group.base);
  }
  double* const value = to.value + group.value + position.before * (B * B) + position.rank;
  for (int j = 0; j < B; ++j)
    for (int c = 0; c < B; ++c) value[(c * B + j) * position.stride] = block[j * B + c];
}

/// Where a block row lies in sliced ELL.
struct GroupOfBlockRow {
  DeviceGroup const* group = nullptr;
  std::uint32_t const* mask = nullptr;  ///< the group's
  int lane = 0;
};
HOSTLESS_HOST_DEVICE GroupOfBlockRow group_of(RowsView const& rows, std::int64_t block_row) {
  int const slice = rows.tiling.slice_of(block_row);
  std::int64_t const inside = block_row - rows.tiling.first(slice);
  DeviceGroup const* const group = rows.sell.group + rows.sell.first_group[slice] + inside / tile_block_rows;
  return {group, rows.sell.mask + group->mask, static_cast<int>(inside % tile_block_rows)};
}

/// All entries of a block row.
template <int B>
HOSTLESS_HOST_DEVICE void write_block_row(LayoutArrays const& to, RowsView const& rows,
                                          problems::Recipe const& recipe, std::int64_t block_row) {
  if (rows.format == DeviceFormat::diagonals) {
    DiagonalsView const& a = rows.diagonals;
    problems::make_block_row<B>(recipe, block_row, [&](int, std::int64_t shift, double const(&block)[B * B]) {
      int k = a.mirrored;  // blocks of the mirrored ones are not stored
      while (k < a.count && a.offset[k] != shift) ++k;
      if (k < a.count) write_on_diagonal<B>(to, a, k, block_row, block);
    });
    return;
  }
  GroupOfBlockRow const at = group_of(rows, block_row);
  problems::make_block_row<B>(
      recipe, block_row, [&](int slot, std::int64_t shift, double const(&block)[B * B]) {
        std::int64_t const before = blocks_before(*at.group, at.mask, slot);  // slots do not come in turn
        write_in_group<B>(to, *at.group, sell_position(*at.group, at.mask, at.lane, slot, before),
                          block_row + shift, block);
      });
}

}  // namespace hostless::gpu
