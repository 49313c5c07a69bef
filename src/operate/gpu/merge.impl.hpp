#pragma once
// A product of CSR rows whose work is shared out evenly, whatever the rows' lengths (Merrill & Garland 2016,
// "Merge-based parallel sparse matrix-vector multiplication"): row ends and entries are merged into one list
// in which the end of a row follows its last entry, and every thread gets equally many of its items. A row
// that spans threads is put together from what each of them carries out. The order of a row's sum follows
// from where the list is cut, so it is none of the plan's; it is the same every time.

#include "device/runtime.hpp"
#include "operate/device_rows.hpp"

namespace hostless::gpu {

/// Of one thread: odd, so that threads that walk through shared memory meet in few banks.
constexpr int merge_items = 7;

/// Where a cut lies: so many row ends and entries come before it.
struct MergePosition {
  std::int32_t row = 0;
  std::int64_t entry = 0;
};

/// The position before item `item`. end(row): the entries of all rows up to this one; the end of a row is
/// item number row + end(row) of the list.
template <class End>
HOSTLESS_HOST_DEVICE MergePosition merge_position(std::int64_t item, std::int32_t rows, End const& end) {
  std::int32_t low = 0, high = item < rows ? static_cast<std::int32_t>(item) : rows;
  while (low < high) {
    std::int32_t const middle = low + (high - low) / 2;
    if (middle + static_cast<std::int64_t>(end(middle)) < item) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return {low, item - low};
}

/// What a stretch of the list keeps back for the row that it does not end.
struct MergeCarry {
  double sum = 0;
  bool ended = false;  ///< a row: what came before the stretch has found its row inside
};
/// Of two stretches, one after the other. Associative but for rounding.
HOSTLESS_HOST_DEVICE MergeCarry follow(MergeCarry before, MergeCarry after) {
  return {after.ended ? after.sum : before.sum + after.sum, before.ended || after.ended};
}

/// A stretch of the list on which one block works: the rows that end in it, and its entries.
struct MergeTile {
  std::int32_t first_row = 0, rows = 0;
  std::int64_t first_entry = 0;
  std::int32_t entries = 0;
};
HOSTLESS_HOST_DEVICE MergeTile merge_tile(MergePosition first, MergePosition last) {
  return {first.row, last.row - first.row, first.entry, static_cast<std::int32_t>(last.entry - first.entry)};
}

/// This thread's share of what the tile's threads read together: product[k] of the tile's entries, and where
/// its rows end among them, with an end that is never reached behind the last. All loads of values are in
/// flight together, and so are those of x.
template <int items>
HOSTLESS_HOST_DEVICE void stage_tile(CsrView const& a, MergeTile const& tile, int thread, int threads,
                                     double const* x, double* product, std::int32_t* row_end) {
  double value[items] = {}, at[items] = {};
  HOSTLESS_UNROLL
  for (int k = 0; k < items; ++k) {
    int const entry = thread + k * threads;
    if (entry >= tile.entries) continue;
    value[k] = load_once(a.value + tile.first_entry + entry);
    at[k] = x[load_constant(a.column + tile.first_entry + entry)];
  }
  for (int row = thread; row < tile.rows; row += threads)
    row_end[row] =
        static_cast<std::int32_t>(load_constant(a.start + tile.first_row + row + 1) - tile.first_entry);
  if (thread == 0) row_end[tile.rows] = INT32_MAX;
  HOSTLESS_UNROLL
  for (int k = 0; k < items; ++k) {
    int const entry = thread + k * threads;
    if (entry < tile.entries) product[entry] = value[k] * at[k];
  }
}

/// Walks through the items of one thread. The first row that ends there waits in `first`, because threads
/// before may hold a part of it; store(row of the tile, sum) gets the others.
struct MergeFirst {
  std::int32_t row = -1;  ///< of the tile; -1: none ends
  double sum = 0;
};
template <int items, class Store>
HOSTLESS_HOST_DEVICE MergeCarry walk_tile(MergeTile const& tile, int thread, double const* product,
                                          std::int32_t const* row_end, MergeFirst& first,
                                          Store const& store) {
  int const all = tile.rows + tile.entries, item = thread * items;
  if (item >= all) return {};
  MergePosition const position =
      merge_position(item, tile.rows, [&](std::int32_t row) { return row_end[row]; });
  std::int32_t row = position.row, end = row_end[row];
  auto entry = static_cast<std::int32_t>(position.entry);
  MergeCarry carry;
  HOSTLESS_UNROLL
  for (int k = 0; k < items; ++k) {
    if (item + k >= all) continue;
    if (entry < end) {
      carry.sum += product[entry++];
      continue;
    }
    if (carry.ended) {
      store(row, carry.sum);
    } else {
      first = {row, carry.sum};
    }
    carry = {0.0, true};
    end = row_end[++row];
  }
  return carry;
}

/// Adds what tiles have carried out to the row that `tile` begins and does not end; nothing where it began
/// earlier, because one thread adds all of a row. tile_row: of the first row of each tile, and behind the
/// last.
HOSTLESS_HOST_DEVICE void add_carries(int tile, int tiles, std::int32_t rows, std::int32_t const* tile_row,
                                      double const* carry, double* y) {
  std::int32_t const row = tile_row[tile + 1];
  if (row == rows || (tile > 0 && tile_row[tile] == row)) return;
  double sum = carry[tile];
  for (int next = tile + 1; next < tiles && tile_row[next + 1] == row; ++next) sum += carry[next];
  y[row] = sum + y[row];
}

}  // namespace hostless::gpu
