#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "hostless/base/error.hpp"
#include "storage.hpp"

namespace hostless {
namespace {

[[noreturn]] void differs(std::int64_t row) {
  throw Error(ErrorCode::usage,
              fmt::format("row {} (local) does not have the pattern that the matrix was built with "
                          "(values are replaced in place). Build a new matrix for a new pattern",
                          row));
}

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
      : storage_(storage), block_(storage.tiling.block), update_(update) {}

  void operator()(int s, std::int64_t first_leaf, LocalPanel const& panel) {
    switch (storage_.shape.format) {
      case Format::csr:
        return csr(s, first_leaf * block_, panel);
      case Format::bsr:
        return bsr(s, first_leaf, panel);
      case Format::sell:
        return sell(s, first_leaf, panel);
    }
  }

  bool mirrors_hold() const { return mirrors_hold_; }

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

  void bsr(int s, std::int64_t first_leaf, LocalPanel const& panel) {
    Shape const& shape = storage_.shape;
    SliceStart const& slice = shape.slice[s];
    std::uint32_t const* start = shape.start.data() + first_leaf + s;
    MirrorCounts const* mirrored = shape.mirrored.empty() ? nullptr : shape.mirrored.data() + first_leaf + s;
    ColumnStore columns(storage_, s, update_);
    std::int64_t const leaves = (static_cast<std::int64_t>(panel.offset.size()) - 1) / block_;
    for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
      std::int64_t const row = (first_leaf + leaf) * block_;
      leaf_columns(panel, leaf * block_, block_, leaf_columns_);
      leaf_blocks(panel, leaf * block_, block_, leaf_columns_, leaf_blocks_);
      MirrorCounts const here = mirrored == nullptr ? MirrorCounts() : mirrored[leaf];
      std::int64_t const mirrors = mirrored == nullptr ? 0 : mirrored[leaf + 1].before - here.before;
      auto const blocks = static_cast<std::int64_t>(leaf_columns_.size());
      if (blocks != std::int64_t{start[leaf + 1]} - start[leaf] + mirrors) differs(row);
      for (std::int64_t k = 0; k < blocks; ++k) {
        if (!columns.put(slice.column + start[leaf] + here.before + k, leaf_columns_[k])) differs(row);
      }
      std::int64_t const square = std::int64_t{block_} * block_;
      double* value = storage_.value.data() + slice.value + start[leaf] * square;
      auto const from = leaf_blocks_.begin();
      std::copy(from, from + here.far * square, value);
      std::copy(from + (here.far + mirrors) * square, leaf_blocks_.end(), value + here.far * square);
      for (std::int64_t k = 0; k < mirrors; ++k) {
        double const* image =
            storage_.value.data() + slice.value + shape.mirror[slice.mirror + here.before + k] * square;
        if (!is_transpose(leaf_blocks_.data() + (here.far + k) * square, image)) mirrors_hold_ = false;
      }
    }
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

  void sell(int s, std::int64_t first_leaf, LocalPanel const& panel) {
    std::int64_t const rows = static_cast<std::int64_t>(panel.offset.size()) - 1;
    std::int64_t g = storage_.shape.first_group[s] + (first_leaf - storage_.tiling.first(s)) / group_leaves;
    for (std::int64_t row = 0; row < rows; row += group_leaves * block_, ++g) {
      std::int64_t const count = std::min<std::int64_t>(group_leaves * block_, rows - row);
      SellGroup const& group = storage_.shape.group[g];
      if (group.kind != SellGroup::Kind::listed) {
        diagonals(group, first_leaf, row, count, panel);
      } else {
        listed(s, group, first_leaf * block_, row, count, panel);
      }
    }
  }

  void diagonals(SellGroup const& group, std::int64_t first_row, std::int64_t row, std::int64_t count,
                 LocalPanel const& panel) {
    auto const width = static_cast<std::size_t>(group.width);
    Diagonal const* stored = storage_.shape.diagonal.data() + group.column;
    panel_diagonals(panel, row, count, width, diagonals_);
    if (diagonals_.size() != width) differs(first_row + row);
    double* value = storage_.value.data() + group.value;
    for (std::size_t d = 0; d < width; ++d) {
      if (stored[d].first != diagonals_[d].first || stored[d].mask != diagonals_[d].mask) {
        bool const moved = stored[d].first != diagonals_[d].first;
        std::uint32_t const other = moved ? diagonals_[d].mask : stored[d].mask ^ diagonals_[d].mask;
        differs(first_row + row + __builtin_ctz(other));
      }
      if (stored[d].mirrored == 0) std::fill_n(value + stored[d].low, group_leaves, 0.0);
    }
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
            mirrors_hold_ = false;
          }
        }
      }
    }
  }

  void listed(int s, SellGroup const& group, std::int64_t first_row, std::int64_t row, std::int64_t count,
              LocalPanel const& panel) {
    ColumnStore columns(storage_, s, update_);
    for (std::int64_t lane = 0; lane < group_leaves; ++lane) {
      for (int j = 0; j < block_; ++j) {
        // Lanes past the slice's end hold no entries and point at the last row: their sums are not stored.
        std::int64_t const i = std::min(row + lane * block_ + j, row + count - 1);
        bool const real = row + lane * block_ + j < row + count;
        std::int64_t const length = real ? panel.offset[i + 1] - panel.offset[i] : 0;
        if (length > group.width) differs(first_row + i);
        for (std::int64_t k = 0; k < group.width; ++k) {
          std::int64_t const at = (k * block_ + j) * group_leaves + lane, from = panel.offset[i] + k;
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
  bool update_;
  bool mirrors_hold_ = true;
  std::vector<std::int32_t> leaf_columns_;
  std::vector<double> leaf_blocks_;
  std::vector<Diagonal> diagonals_;
};

}  // namespace

void leaf_blocks(LocalPanel const& panel, std::int64_t row, int block,
                 std::vector<std::int32_t> const& columns, std::vector<double>& out) {
  out.assign(columns.size() * static_cast<std::size_t>(block * block), 0.0);
  for (int j = 0; j < block; ++j) {
    std::int64_t at = 0;
    for (std::int64_t k = panel.offset[row + j]; k < panel.offset[row + j + 1]; ++k) {
      std::int32_t const column = panel.column[k];
      while (columns[at] != column / block) ++at;
      out[(at * block + column % block) * block + j] = panel.value[k];
    }
  }
}

bool fill(LocalRows const& rows, MatrixStorage& storage, bool update) {
  Filler filler(storage, update);
  for_each_panel(rows, storage.tiling, [&](int s, std::int64_t first_leaf, LocalPanel const& panel) {
    filler(s, first_leaf, panel);
  });
  return filler.mirrors_hold();
}

}  // namespace hostless
