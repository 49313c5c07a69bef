#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "hostless/base/error.hpp"
#include "hostless/operate/pattern_differs.hpp"
#include "storage.hpp"

namespace hostless {
namespace {

[[noreturn]] void differs(std::int64_t row) { throw PatternDiffers(row, row); }

/// The stored columns of one slice; writes them, or compares when updating.
class ColumnStore {
 public:
  ColumnStore(MatrixStorage& storage, int slice, bool update)
      : storage_(storage), start_(storage.shape.slice[slice]), update_(update) {}

  /// False: another column is stored there.
  bool put(std::int64_t at, std::int64_t column) {
    if (start_.wide != 0) return put(storage_.wide[at], static_cast<std::int32_t>(column));
    // An update may bring any column; one outside the 16 bits cannot be the stored one.
    std::int64_t const offset = column - start_.base;
    if (offset < 0 || offset > UINT16_MAX) return false;
    return put(storage_.narrow[at], static_cast<std::uint16_t>(offset));
  }
  /// Of halved BSR; the mark is set when the matrix is made.
  bool put(std::int64_t at, std::int64_t column, bool once) {
    if (update_) return column_at(storage_, start_, at) == column;
    if (start_.wide != 0) {
      storage_.wide[at] = static_cast<std::int32_t>(column - start_.base) | (once ? once_wide : 0);
    } else {
      auto const offset = static_cast<std::uint16_t>(column - start_.base);
      storage_.narrow[at] = static_cast<std::uint16_t>(offset | (once ? once_narrow : 0));
    }
    return true;
  }

 private:
  template <class T>
  bool put(T& stored, T column) {
    if (update_) return stored == column;
    stored = column;
    return true;
  }
  MatrixStorage& storage_;
  SliceStart const& start_;
  bool update_;
};

class Filler {
 public:
  Filler(MatrixStorage& storage, bool update)
      : storage_(storage),
        block_(storage.tiling.block),
        square_(std::int64_t{block_} * block_),
        update_(update) {
    if (storage.shape.ring == 0) return;
    far_of_.assign(static_cast<std::size_t>(storage.tiling.block_rows), -1);
    for (std::size_t f = 0; f < storage.shape.far_block_row.size(); ++f)
      far_of_[storage.shape.far_block_row[f]] = static_cast<std::int32_t>(f);
  }

  void operator()(int s, std::int64_t first_block_row, LocalPanel const& panel) {
    switch (storage_.shape.format) {
      case Format::csr:
        return csr(s, first_block_row * block_, panel);
      case Format::bsr:
        return bsr(s, first_block_row, panel);
      case Format::sell:
        return sell(s, first_block_row, panel);
    }
  }

  bool halves_hold() const { return halves_hold_; }

 private:
  void csr(int s, std::int64_t first_row, LocalPanel const& panel) {
    SliceStart const& slice = storage_.shape.slice[s];
    std::uint32_t const* start = storage_.shape.start.data() + first_row + s;
    ColumnStore columns(storage_, s, update_);
    std::int64_t const rows = static_cast<std::int64_t>(panel.offset.size()) - 1;
    for (std::int64_t i = 0; i < rows; ++i) {
      std::int64_t const length = panel.offset[i + 1] - panel.offset[i];
      if (length != std::int64_t{start[i + 1]} - start[i]) differs(first_row + i);
      for (std::int64_t k = 0; k < length; ++k) {
        if (!columns.put(slice.column + start[i] + k, panel.column[panel.offset[i] + k]))
          differs(first_row + i);
        storage_.value[slice.value + start[i] + k] = panel.value[panel.offset[i] + k];
      }
    }
  }

  void bsr(int s, std::int64_t first_block_row, LocalPanel const& panel) {
    Shape const& shape = storage_.shape;
    std::int64_t const block_rows = (static_cast<std::int64_t>(panel.offset.size()) - 1) / block_;
    for (std::int64_t block_row = 0; block_row < block_rows; ++block_row) {
      block_row_columns(panel, block_row * block_, block_, block_row_columns_);
      block_row_blocks(panel, block_row * block_, block_, block_row_columns_, block_row_blocks_);
      if (shape.ring == 0) {
        whole_block_row(s, first_block_row + block_row);
      } else {
        halved_block_row(s, first_block_row + block_row);
      }
    }
  }

  void whole_block_row(int s, std::int64_t block_row) {
    SliceStart const& slice = storage_.shape.slice[s];
    std::uint32_t const* start = storage_.shape.start.data() + block_row + s;
    ColumnStore columns(storage_, s, update_);
    auto const blocks = static_cast<std::int64_t>(block_row_columns_.size());
    if (blocks != std::int64_t{start[1]} - start[0]) differs(block_row * block_);
    for (std::int64_t k = 0; k < blocks; ++k) {
      if (!columns.put(slice.column + start[0] + k, block_row_columns_[k])) differs(block_row * block_);
    }
    std::copy(block_row_blocks_.begin(), block_row_blocks_.end(),
              storage_.value.begin() + slice.value + start[0] * square_);
  }

  /// The block row's blocks in rising column: far ones, ones that the other triangle holds, ones in its row.
  void halved_block_row(int s, std::int64_t block_row) {
    Shape const& shape = storage_.shape;
    SliceStart const& slice = shape.slice[s];
    std::uint32_t const* start = shape.start.data() + block_row + s;
    std::int64_t const in_row = std::int64_t{start[1]} - start[0];
    std::int64_t const far_at = far_of_[block_row];
    std::int64_t const far = far_at < 0 ? 0 : shape.far_start[far_at + 1] - shape.far_start[far_at];
    std::int64_t const run = static_cast<std::int64_t>(block_row_columns_.size()) - in_row - far;
    if (run < 0) differs(block_row * block_);
    for (std::int64_t k = 0; k < far; ++k) {
      std::int32_t& column = storage_.far_column[shape.far_start[far_at] + k];
      if (update_ && column != block_row_columns_[k]) differs(block_row * block_);
      column = block_row_columns_[k];
    }
    auto const from = block_row_blocks_.begin();
    if (far > 0)
      std::copy_n(from, far * square_, storage_.far_value.begin() + shape.far_start[far_at] * square_);
    for (std::int64_t k = far; k < far + run; ++k) {
      if (!other_triangle_holds(block_row_columns_[k], block_row, block_row_blocks_.data() + k * square_))
        halves_hold_ = false;
    }
    ColumnStore columns(storage_, s, update_);
    std::int64_t const first = slice.value / square_ + start[0];
    for (std::int64_t k = 0; k < in_row; ++k) {
      bool const once = !update_ && shape.once[first + k];
      if (!columns.put(slice.column + start[0] + k, block_row_columns_[far + run + k], once))
        differs(block_row * block_);
    }
    std::copy(from + (far + run) * square_, block_row_blocks_.end(),
              storage_.value.begin() + first * square_);
  }

  /// Row `block_row` stores the transpose of `block`, bit for bit, in that column. A column that is not there
  /// in an update is another pattern, and just as well the end of the halves.
  bool other_triangle_holds(std::int64_t block_row, std::int64_t column, double const* block) {
    if (block_row >= column) return false;
    int const s = storage_.tiling.slice_of(block_row);
    SliceStart const& slice = storage_.shape.slice[s];
    std::uint32_t const* start = storage_.shape.start.data() + block_row + s;
    std::int64_t first = start[0], last = start[1];
    while (first < last) {
      std::int64_t const middle = (first + last) / 2;
      if (column_at(storage_, slice, slice.column + middle) < column) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    if (first == start[1] || column_at(storage_, slice, slice.column + first) != column) return false;
    return is_transpose(block, storage_.value.data() + slice.value + first * square_);
  }

  /// Bit for bit: -0.0 is not 0.0 here.
  bool is_transpose(double const* block, double const* image) const {
    for (int c = 0; c < block_; ++c) {
      for (int j = 0; j < block_; ++j) {
        if (std::memcmp(block + c * block_ + j, image + j * block_ + c, sizeof(double)) != 0) return false;
      }
    }
    return true;
  }

  void sell(int s, std::int64_t first_block_row, LocalPanel const& panel) {
    std::int64_t const rows = static_cast<std::int64_t>(panel.offset.size()) - 1;
    std::int64_t g =
        storage_.shape.first_group[s] + (first_block_row - storage_.tiling.first(s)) / group_block_rows;
    for (std::int64_t row = 0; row < rows; row += group_block_rows * block_, ++g) {
      std::int64_t const count = std::min<std::int64_t>(group_block_rows * block_, rows - row);
      SellGroup const& group = storage_.shape.group[g];
      if (group.kind != SellGroup::Kind::listed) {
        diagonals(group, first_block_row, row, count, panel);
      } else {
        listed(s, group, first_block_row * block_, row, count, panel);
      }
    }
  }

  void diagonals(SellGroup const& group, std::int64_t first_row, std::int64_t row, std::int64_t count,
                 LocalPanel const& panel) {
    auto const width = static_cast<std::size_t>(group.width);
    Diagonal const* stored = storage_.shape.diagonal.data() + group.column;
    panel_diagonals(panel, row, count, width, diagonals_);
    bool same = diagonals_.size() == width;
    for (std::size_t d = 0; same && d < width; ++d)
      same = stored[d].first == diagonals_[d].first && stored[d].mask == diagonals_[d].mask;
    if (!same) {
      panel_diagonals(panel, row, count, SIZE_MAX, diagonals_);
      differs(first_row + row + first_other_lane({stored, width}));
    }
    double* value = storage_.value.data() + group.value;
    for (std::size_t d = 0; d < width; ++d)
      if (stored[d].mirrored == 0) std::fill_n(value + stored[d].low, group_block_rows, 0.0);
    for (std::int32_t const mirrored : {0, 1}) {  // images may lie in this very group
      for (std::int64_t lane = 0; lane < count; ++lane) {
        Diagonal const* d = stored;
        for (std::int64_t k = panel.offset[row + lane]; k < panel.offset[row + lane + 1]; ++k) {
          while (d->first + lane != panel.column[k]) ++d;
          if (d->mirrored != mirrored) continue;
          double* at = value + (lane < d->split ? d->low : d->high) + lane;
          if (mirrored == 0) {
            *at = panel.value[k];
          } else if (std::memcmp(at, &panel.value[k], sizeof *at) != 0) {
            halves_hold_ = false;
          }
        }
      }
    }
  }

  /// The first row of a group that has an entry more or less than its stored diagonals say.
  int first_other_lane(std::span<Diagonal const> stored) const {
    std::uint32_t other = 0;
    auto mine = diagonals_.begin();
    for (Diagonal const& one : stored) {
      for (; mine != diagonals_.end() && mine->first < one.first; ++mine) other |= mine->mask;
      bool const is_here = mine != diagonals_.end() && mine->first == one.first;
      other |= is_here ? one.mask ^ mine->mask : one.mask;
      if (is_here) ++mine;
    }
    for (; mine != diagonals_.end(); ++mine) other |= mine->mask;
    return __builtin_ctz(other);
  }

  void listed(int s, SellGroup const& group, std::int64_t first_row, std::int64_t row, std::int64_t count,
              LocalPanel const& panel) {
    ColumnStore columns(storage_, s, update_);
    for (std::int64_t lane = 0; lane < group_block_rows; ++lane) {
      for (int j = 0; j < block_; ++j) {
        // Lanes past the slice's end hold no entries and point at the last row: their sums are not stored.
        std::int64_t const i = std::min(row + lane * block_ + j, row + count - 1);
        bool const real = row + lane * block_ + j < row + count;
        std::int64_t const length = real ? panel.offset[i + 1] - panel.offset[i] : 0;
        if (length > group.width) differs(first_row + i);
        for (std::int64_t k = 0; k < group.width; ++k) {
          std::int64_t const at = (k * block_ + j) * group_block_rows + lane, from = panel.offset[i] + k;
          // Padding reads the row's own x (never column 0, where an Inf would poison other rows).
          if (!columns.put(group.column + at, k < length ? panel.column[from] : first_row + i))
            differs(first_row + i);
          storage_.value[group.value + at] = k < length ? panel.value[from] : 0.0;
        }
      }
    }
  }

  MatrixStorage& storage_;
  int block_;
  std::int64_t square_;
  bool update_;
  bool halves_hold_ = true;
  std::vector<std::int32_t> far_of_;  // of a block row with far blocks: where in far_block_row; else -1
  std::vector<std::int32_t> block_row_columns_;
  std::vector<double> block_row_blocks_;
  std::vector<Diagonal> diagonals_;
};

}  // namespace

bool fill(LocalRows const& rows, MatrixStorage& storage, bool update) {
  Filler filler(storage, update);
  for_each_panel(
      rows, storage.tiling,
      [&](int s, std::int64_t first_block_row, LocalPanel const& panel) {
        filler(s, first_block_row, panel);
      },
      update);
  storage.shape.once = {};
  return filler.halves_hold();
}

}  // namespace hostless
