#pragma once
// Rows that a caller has in a GPU's memory, from their first look to the layout: bodies, a row or a block row
// each.

#include <cstdint>

#include "hostless/plan/exchange_plan.hpp"
#include "operate/device_rows.hpp"
#include "operate/gpu/generate.impl.hpp"
#include "operate/gpu/value_indices.impl.hpp"
#include "operate/pattern_scan.hpp"

namespace hostless::gpu {

/// entries: how many columns and values there are.
HOSTLESS_HOST_DEVICE RowFault fault_of(RowsOfCaller const& a, std::int64_t entries, std::int64_t row) {
  std::int64_t const begin = a.offset.whole(row), end = a.offset.whole(row + 1);
  if (begin < 0 || end < begin || end > entries || (row == 0 && begin != 0))
    return {RowFault::Kind::offsets, row, end, begin};
  std::int64_t before = -1;
  for (std::int64_t k = begin; k < end; ++k) {
    std::int64_t const column = a.column.whole(k);
    if (column < 0 || column >= a.rows) return {RowFault::Kind::column, row, column, before};
    if (column <= before) return {RowFault::Kind::order, row, column, before};
    before = column;
  }
  return {RowFault::Kind::none, row, 0, 0};
}

/// Its part in the pattern. Calls use(column) for those outside [first, last).
template <class Use>
HOSTLESS_HOST_DEVICE std::uint64_t pattern_word(RowsOfCaller const& a, std::int64_t row, std::int64_t first,
                                                std::int64_t last, Use const& use) {
  return hostless::pattern_word(row, a.offset.whole(row), a.offset.whole(row + 1), [&](std::int64_t k) {
    std::int64_t const column = a.column.whole(k);
    bool const is_outside = column < first || column >= last;
    if (is_outside && column >= 0 && column < a.rows) use(column);
    return column;
  });
}

/// The blocks of `rows` <= B rows from `row` on: put(row inside, column inside, entry) for the entries of
/// one, then use(its column block row); columns rise.
template <int B, class Put, class Use>
HOSTLESS_HOST_DEVICE void walk_blocks(RowsOfCaller const& a, std::int64_t row, int rows, Put const& put,
                                      Use const& use) {
  std::int64_t at[B], end[B], column[B];
  for (int j = 0; j < B; ++j) {
    at[j] = j < rows ? a.offset.whole(row + j) : 0;
    end[j] = j < rows ? a.offset.whole(row + j + 1) : 0;
    column[j] = at[j] < end[j] ? a.column.whole(at[j]) : INT64_MAX;
  }
  for (;;) {
    std::int64_t least = column[0];
    for (int j = 1; j < B; ++j) least = least < column[j] ? least : column[j];
    if (least == INT64_MAX) return;
    std::int64_t const block_row = least / B, past = (block_row + 1) * B;
    for (int j = 0; j < B; ++j) {
      while (column[j] < past) {
        put(j, static_cast<int>(column[j] - block_row * B), at[j]);
        ++at[j];
        column[j] = at[j] < end[j] ? a.column.whole(at[j]) : INT64_MAX;
      }
    }
    use(block_row);
  }
}

/// How many there are.
template <int B>
HOSTLESS_HOST_DEVICE std::int64_t count_blocks(RowsOfCaller const& a, std::int64_t row, int rows) {
  std::int64_t count = 0;
  walk_blocks<B>(
      a, row, rows, [](int, int, std::int64_t) {}, [&](std::int64_t) { ++count; });
  return count;
}

/// A CallerShare, for kernels.
struct ShareView {
  RowsOfCaller rows;
  std::int64_t first_row = 0, block_rows = 0;
  std::int64_t const* ghost_block_row = nullptr;
  std::int64_t ghosts = 0, below = 0;  ///< block rows
};

/// Of a block row that is not the share's own.
HOSTLESS_HOST_DEVICE std::int64_t ghost_of(ShareView const& a, std::int64_t block_row) {
  std::int64_t low = 0;
  for (std::int64_t high = a.ghosts; low < high;) {
    std::int64_t const middle = low + (high - low) / 2;
    if (a.ghost_block_row[middle] < block_row) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// The local column of a block row of the whole matrix; `outside` is called with the number of a ghost.
template <int B, class Outside>
HOSTLESS_HOST_DEVICE std::int64_t local_column_in(ShareView const& a, std::int64_t block_row,
                                                  Outside const& outside) {
  std::int64_t const inside = block_row - a.first_row / B;
  if (inside >= 0 && inside < a.block_rows) return inside;
  std::int64_t const ghost = ghost_of(a, block_row);
  if (ghost < a.ghosts) outside(ghost);
  return vector_offset_of(a.block_rows + ghost, a.block_rows, a.below);
}
template <int B>
HOSTLESS_HOST_DEVICE std::int64_t local_column_in(ShareView const& a, std::int64_t block_row) {
  return local_column_in<B>(a, block_row, [](std::int64_t) {});
}

/// The block at a diagonal. What own rows read from the local column of a ghost lies there, where the other
/// triangle is not stored; of owned rows it is an image.
template <int B>
HOSTLESS_HOST_DEVICE void write_either_side(LayoutArrays const& to, DiagonalsView const& a,
                                            std::int64_t block_row, std::int64_t block_rows,
                                            std::int64_t local_column, double const (&block)[B * B]) {
  int k = 0;
  while (k < a.count && a.offset[k] != local_column - block_row) ++k;
  if (k == a.count) return;  // nothing is written elsewhere, also where arrays have changed meanwhile
  if (k >= a.mirrored) return write_on_diagonal<B>(to, a, k, block_row, block);
  if (local_column >= 0 && local_column < block_rows) return;
  double image[B * B];
  for (int j = 0; j < B; ++j)
    for (int c = 0; c < B; ++c) image[c * B + j] = block[j * B + c];
  write_on_diagonal<B>(to, a, k, local_column, image);
}

/// All entries of a block row, but of CSR.
template <int B>
HOSTLESS_HOST_DEVICE void write_block_row(LayoutArrays const& to, RowsView const& rows, ShareView const& from,
                                          std::int64_t block_row) {
  double block[B * B] = {};
  auto const put = [&](int j, int c, std::int64_t k) {
    double const value = from.rows.value.at(k);
    for (int e = 0; e < B; ++e)  // so that the block can stay in registers
      if (e == c) block[j * B + e] = value;
  };
  std::int64_t const row = from.first_row + block_row * B;
  bool const on_diagonals = rows.format == DeviceFormat::diagonals;
  GroupOfBlockRow group;
  if (!on_diagonals) group = group_of(rows, block_row);
  std::int64_t before = 0;
  int slot = 0;
  walk_blocks<B>(from.rows, row, B, put, [&](std::int64_t column) {
    std::int64_t const local_column = local_column_in<B>(from, column);
    if (on_diagonals) {
      write_either_side<B>(to, rows.diagonals, block_row, from.block_rows, local_column, block);
    } else if (slot < group.group->width) {
      SellPosition const at = sell_position(*group.group, group.mask, group.lane, slot++, before);
      before += at.stride;
      write_in_group<B>(to, *group.group, at, local_column, block);
    }
    for (double& value : block) value = 0;
  });
}

/// A row of CSR, and where the next one begins.
template <int B>
HOSTLESS_HOST_DEVICE void write_row(LayoutArrays const& to, ShareView const& from, std::int64_t row) {
  std::int64_t const first = from.rows.offset.whole(from.first_row),
                     begin = from.rows.offset.whole(from.first_row + row),
                     end = from.rows.offset.whole(from.first_row + row + 1);
  if (row == 0) to.start[0] = 0;
  to.start[row + 1] = end - first;
  for (std::int64_t k = begin; k < end; ++k) {
    if (k < first || k - first >= to.entries) return;
    std::int64_t const column = from.rows.column.whole(k);
    to.wide[k - first] = static_cast<std::int32_t>(local_column_in<B>(from, column / B) * B + column % B);
    to.value[k - first] = from.rows.value.at(k);
  }
}

}  // namespace hostless::gpu
