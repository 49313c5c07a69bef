#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "array.hpp"
#include "base/setup_watch.hpp"
#include "hostless/operate/local_matrix.hpp"
#include "matrix_view.hpp"

namespace hostless {

/// The shape of the matrix in one format, counted before any value is stored.
struct Shape {
  Format format = Format::csr;
  std::vector<SliceStart> slice;
  Array<std::uint32_t> start;            ///< CSR, BSR
  std::vector<SlotReads> reads;          ///< of every slot
  std::vector<std::int64_t> first_slot;  ///< this and what follows: HalvedView
  std::vector<FarRange> far_range;
  Array<std::int32_t> far_block_row;
  Array<std::int64_t> far_start;
  std::int64_t ring = 0;                  ///< block rows; 0: every block is stored
  std::vector<bool> once;                 ///< of every block in a row; until the columns are written
  Array<SellGroup> group;                 ///< sliced ELL
  std::vector<std::int64_t> first_group;  ///< sliced ELL
  Array<Diagonal> diagonal;               ///< sliced ELL
  std::int64_t values = 0;                ///< fp64 values, filled-in zeros counted
  std::int64_t narrow = 0, wide = 0;
  std::int64_t left_out = 0;  ///< entries (BSR: blocks) that are not stored

  std::int64_t far_blocks() const { return far_start.empty() ? 0 : far_start.back(); }
  std::int64_t sweep_bytes(int block) const;
};

/// What the first pass learns.
struct Counted {
  std::vector<Shape> candidates;  ///< in the order CSR, BSR, sliced ELL; those not asked for are left out
  GhostReads ghosts;
  std::vector<RowRange> owned_reads;  ///< [slots]
  SweepOrder order;
  std::int64_t entries = 0;
};
Counted count(LocalRows const& rows, Tiling const& tiling, FormatRequest request);

struct MatrixStorage {
  Tiling tiling;
  std::int64_t owned = 0, ghosts = 0, ghosts_below = 0, entries = 0;
  Isa isa = Isa::baseline;
  FormatRequest request;
  bool complete = false;  ///< built to the end
  Shape shape;
  GhostReads reads;
  std::vector<RowRange> owned_reads;  ///< [slots]
  SweepOrder order;
  std::vector<std::int64_t> first_reads;  ///< [slices + 1]: a slice's slots in shape.reads and owned_reads
  std::int64_t window = 0;                ///< units of x that a window of several right-hand sides has
  std::string why;
  Array<double> value;
  Array<std::uint16_t> narrow;
  Array<std::int32_t> wide;
  Array<std::int32_t> far_column;
  Array<double> far_value;
  MatrixView view;
};

/// The stored column at a place of `narrow` or `wide`, which belongs to that slice; without its mark.
inline std::int64_t column_at(MatrixStorage const& storage, SliceStart const& slice, std::int64_t at) {
  if (storage.shape.ring == 0) return slice.wide != 0 ? storage.wide[at] : slice.base + storage.narrow[at];
  return slice.base + (slice.wide != 0 ? without_mark(storage.wide[at]) : without_mark(storage.narrow[at]));
}

/// Second pass: writes columns and values. `update`: compares the columns instead and writes values only.
/// False: what is stored once for both triangles differs between them, and the matrix is not the one given.
bool fill(LocalRows const& rows, MatrixStorage& storage, bool update);
std::optional<LocalMatrix::Entry> find_beyond_fp32(MatrixStorage const& storage);
void read_diagonal_blocks(MatrixStorage const& storage, std::vector<double>& out);

/// Calls use(slice, first_block_row, panel) for every slot of up to 256 block rows, in order, with a checked
/// panel.
template <class Use>
void for_each_panel(LocalRows const& rows, Tiling const& tiling, Use&& use, bool update = false);
/// Of slices [begin, end).
template <class Use>
void for_each_panel(LocalRows const& rows, Tiling const& tiling, int begin, int end, Use&& use,
                    bool update = false);
/// Offsets fit, columns rising and in [first, last). Errors  usage  with the row; for an update with a column
/// outside of them PatternDiffers
void check_panel(LocalPanel const& panel, std::int64_t first_row, std::int64_t count,
                 std::int64_t first_column, std::int64_t last_column, bool update = false);

template <class Use>
void for_each_panel(LocalRows const& rows, Tiling const& tiling, Use&& use, bool update) {
  for_each_panel(rows, tiling, 0, tiling.slices, use, update);
}

template <class Use>
void for_each_panel(LocalRows const& rows, Tiling const& tiling, int begin, int end, Use&& use, bool update) {
  LocalPanel panel;
  std::int64_t const first_column = -rows.ghosts_below();
  std::int64_t const last_column = first_column + rows.owned() + rows.ghosts();
  for (int s = begin; s < end; ++s) {
    for (std::int64_t block_row = tiling.first(s); block_row < tiling.first(s + 1);
         block_row += Tiling::accumulators) {
      std::int64_t const left = tiling.first(s + 1) - block_row;
      std::int64_t const count = (left < Tiling::accumulators ? left : Tiling::accumulators) * tiling.block;
      panel.clear();
      rows.panel(block_row * tiling.block, count, panel);
      setup_step(count);
      check_panel(panel, block_row * tiling.block, count, first_column, last_column, update);
      use(s, block_row, panel);
    }
  }
}

/// The block columns that rows [row, row + block) of the panel touch, rising.
void block_row_columns(LocalPanel const& panel, std::int64_t row, int block, std::vector<std::int32_t>& out);

/// The blocks of rows [row, row + block) at `columns` (from block_row_columns), column-major, missing entries
/// 0: the rows of a block are the lanes of a vector.
void block_row_blocks(LocalPanel const& panel, std::int64_t row, int block,
                      std::vector<std::int32_t> const& columns, std::vector<double>& out);

/// The diagonals of rows [row, row + count) of a panel, rising, with their masks; empty when there are more
/// than `most`.
void panel_diagonals(LocalPanel const& panel, std::int64_t row, std::int64_t count, std::size_t most,
                     std::vector<Diagonal>& out);

}  // namespace hostless
