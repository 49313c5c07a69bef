#include "operate/device_rows.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <span>

#include "operate/device_layout.hpp"
#include "operate/shared_slices.hpp"

namespace hostless {
namespace {

/// Of slices [begin, end) of a tiling.
class DeviceCounter {
 public:
  DeviceCounter(Tiling const& tiling, int begin, int end) : tiling_(tiling), begin_(begin) {
    counted_.first_group.assign(static_cast<std::size_t>(end - begin) + 1, 0);
    counted_.first_entry.assign(counted_.first_group.size(), 0);
  }

  void add(int slice, std::int64_t first_block_row, LocalPanel const& panel) {
    counted_.entries += panel.offset.back();
    int const b = tiling_.block;
    auto const block_rows = (static_cast<std::int64_t>(panel.offset.size()) - 1) / b;
    for (std::int64_t i = 0; i < block_rows; ++i) {
      block_row_columns(panel, i * b, b, columns_);
      if (i % tile_block_rows == 0) begin_group();
      if (!columns_.empty()) reach(static_cast<std::int32_t>(first_block_row + i));
      width_[static_cast<std::size_t>(block_rows_++)] = static_cast<std::int32_t>(columns_.size());
      if (i + 1 == block_rows || (i + 1) % tile_block_rows == 0)
        counted_.lay_out_group(tiling_.block, std::span(width_).first(static_cast<std::size_t>(block_rows_)),
                               least_, most_);
    }
    auto const next = static_cast<std::size_t>(slice - begin_) + 1;
    counted_.first_group[next] = static_cast<std::int32_t>(counted_.group.size());
    counted_.first_entry[next] = counted_.entries;
  }
  DeviceCount take() {
    for (std::size_t s = 1; s < counted_.first_group.size();
         ++s) {  // slices without a block row were not added
      counted_.first_group[s] = std::max(counted_.first_group[s], counted_.first_group[s - 1]);
      counted_.first_entry[s] = std::max(counted_.first_entry[s], counted_.first_entry[s - 1]);
    }
    return std::move(counted_);
  }

 private:
  void begin_group() {
    counted_.group.emplace_back();
    least_ = INT32_MAX;
    most_ = INT32_MIN;
    block_rows_ = 0;
  }
  void reach(std::int32_t block_row) {
    std::int32_t const first = columns_.front(), last = columns_.back();
    least_ = std::min(least_, first);
    most_ = std::max(most_, last);
    counted_.farthest = std::max({counted_.farthest, std::abs(std::int64_t{first} - block_row),
                                  std::abs(std::int64_t{last} - block_row)});
    for (std::size_t k = 0; counted_.few_diagonals && k < columns_.size(); ++k)
      counted_.add_offset(columns_[k] - block_row);
  }

  Tiling tiling_;
  int begin_;
  DeviceCount counted_;
  std::vector<std::int32_t> columns_;
  std::array<std::int32_t, tile_block_rows> width_{};  // of the group's block rows
  std::int32_t least_ = 0, most_ = 0, block_rows_ = 0;
};

bool is_zero(double const* block, int square) {
  for (int k = 0; k < square; ++k) {
    std::uint64_t bits;
    std::memcpy(&bits, block + k, sizeof bits);
    if (bits != 0) return false;
  }
  return true;
}

/// What is done with the rows of a layout on diagonals that stores one triangle: the other one, which is
/// compared with it, may lie with rows that another thread stores.
struct Triangles {
  bool store = true, compare = true;
};

/// Writes the values of one layout, block row by block row; several may, of different slices.
class DeviceFiller {
 public:
  DeviceFiller(DeviceRows& to, std::int64_t first_entry, Triangles triangles)
      : to_(to),
        block_(to.tiling.block),
        square_(block_ * block_),
        next_entry_(first_entry),
        triangles_(triangles) {}

  void add(int slice, std::int64_t first_block_row, LocalPanel const& panel) {
    if (is_csr(to_.format)) return add_csr(first_block_row, panel);
    auto const block_rows = (static_cast<std::int64_t>(panel.offset.size()) - 1) / block_;
    for (std::int64_t i = 0; i < block_rows; ++i) {
      block_row_columns(panel, i * block_, block_, columns_);
      block_row_blocks(panel, i * block_, block_, columns_, blocks_);
      if (to_.format == DeviceFormat::diagonals) {
        add_diagonals(first_block_row + i);
      } else {
        add_sell(slice, first_block_row + i);
      }
    }
  }
  /// Among owned rows and columns every block below the main diagonal is the transpose of one above it.
  bool images_hold() const { return halves_hold_; }
  /// And there are as many of both. Blocks of zeros do not count: they read as what is not there.
  std::int64_t lower_without_upper() const { return lower_ - upper_; }

 private:
  /// `block_row` may lie before the first one.
  double& at_diagonal(std::int64_t block_row, std::int32_t plane, int entry) {
    DiagonalsView const& d = to_.diagonals;
    static_assert(tile_block_rows == 32);
    std::int64_t const at = block_ == 1
                                ? plane * d.stride + block_row
                                : ((block_row >> 5) * d.planes + plane + entry) * 32 + (block_row & 31);
    return to_.value[static_cast<std::size_t>(to_.origin + at)];
  }
  void add_diagonals(std::int64_t block_row) {
    DiagonalsView const& d = to_.diagonals;
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      double const* const block = blocks_.data() + static_cast<std::int64_t>(k) * square_;
      auto const offset = static_cast<std::int32_t>(columns_[k] - block_row);
      auto const at = std::lower_bound(d.offset, d.offset + d.count, offset) - d.offset;
      bool const ghost = columns_[k] < 0 || columns_[k] >= to_.tiling.block_rows;
      bool const counts = !ghost && !is_zero(block, square_);
      if (at < d.mirrored) {
        lower_ += counts && triangles_.compare ? 1 : 0;
        for (int c = 0; c < block_; ++c) {
          for (int j = 0; j < block_; ++j) {
            double& image = at_diagonal(columns_[k], d.plane[at], j * block_ + c);
            double const& entry = block[c * block_ + j];
            if (ghost) {
              // The row of a ghost is not here: its local column holds what this row reads there.
              if (triangles_.store) image = entry;
            } else if (triangles_.compare && std::memcmp(&entry, &image, sizeof(double)) != 0) {
              halves_hold_ = false;
            }
          }
        }
      } else if (triangles_.store) {
        upper_ += counts && offset > 0 ? 1 : 0;
        for (int e = 0; e < square_; ++e) at_diagonal(block_row, d.plane[at], e) = block[e];
      }
    }
  }
  // Lanes past the slice's end have no block row and are never multiplied; their columns are looked up all
  // the same.
  void add_sell(int slice, std::int64_t block_row) {
    std::int64_t const inside = block_row - to_.tiling.first(slice);
    auto const lane = static_cast<int>(inside % tile_block_rows);
    DeviceGroup const& group =
        to_.group[static_cast<std::size_t>(to_.first_group[slice] + inside / tile_block_rows)];
    if (lane == 0 && block_row + tile_block_rows > to_.tiling.first(slice + 1)) clear(group);
    std::int64_t before = 0;
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      SellPosition const position =
          sell_position(group, to_.mask.data() + group.mask, lane, static_cast<int>(k), before);
      before += position.stride;
      auto const at = static_cast<std::size_t>(group.column + position.before + position.rank);
      if (group.wide != 0) {
        to_.wide[at] = columns_[k];
      } else {
        to_.narrow[at] = static_cast<std::uint16_t>(columns_[k] - group.base);
      }
      double* const to = to_.value.data() + group.value + position.before * square_ + position.rank;
      for (int e = 0; e < square_; ++e) to[e * position.stride] = blocks_[k * square_ + e];
    }
  }
  void clear(DeviceGroup const& group) {
    std::int64_t const blocks = blocks_before(group, to_.mask.data() + group.mask, group.width);
    std::fill_n(to_.value.begin() + group.value, blocks * square_, 0.0);
    if (group.wide != 0) {
      std::fill_n(to_.wide.begin() + group.column, blocks, 0);
    } else {
      std::fill_n(to_.narrow.begin() + group.column, blocks, std::uint16_t{0});
    }
  }
  void add_csr(std::int64_t first_block_row, LocalPanel const& panel) {
    auto const row = static_cast<std::size_t>(first_block_row * block_);
    for (std::size_t i = 1; i < panel.offset.size(); ++i) to_.start[row + i] = next_entry_ + panel.offset[i];
    std::copy(panel.value.begin(), panel.value.end(), to_.value.begin() + next_entry_);
    std::copy(panel.column.begin(), panel.column.end(), to_.wide.begin() + next_entry_);
    next_entry_ += panel.offset.back();
  }

  DeviceRows& to_;
  int block_, square_;
  std::int64_t next_entry_;  // of CSR
  Triangles triangles_;
  std::vector<std::int32_t> columns_;
  std::vector<double> blocks_;
  bool halves_hold_ = true;
  std::int64_t lower_ = 0, upper_ = 0;
};

DeviceCount count(SharedSlices const& shared) {
  Tiling const& tiling = shared.tiling();
  auto counters = shared.work([&](int begin, int end) { return DeviceCounter(tiling, begin, end); });
  DeviceCount counted = counters[0].take();
  for (std::size_t part = 1; part < counters.size(); ++part)
    counted.append(counters[part].take(), tiling.block);
  return counted;
}

/// False: one triangle was to be stored, and the other one is not its image.
bool fill_layout(SharedSlices const& shared, DeviceRows& to, DeviceCount const& counted, bool halves) {
  DeviceSizes const sizes = lay_out(to, counted, halves);
  to.start.assign(is_csr(to.format) ? static_cast<std::size_t>(to.tiling.rows()) + 1 : 0, 0);
  to.value.resize(static_cast<std::size_t>(sizes.value));
  to.narrow.resize(static_cast<std::size_t>(sizes.narrow));
  to.wide.resize(static_cast<std::size_t>(sizes.wide));
  if (to.format == DeviceFormat::diagonals) shared.clear(to.value);
  bool const compares =
      to.format == DeviceFormat::diagonals && to.diagonals.mirrored > 0 && !to.value_indices;
  bool hold = true;
  std::int64_t lower_without_upper = 0;
  auto const fill = [&](Triangles triangles) {
    auto const fillers = shared.work([&](int begin, int) {
      return DeviceFiller(to, counted.first_entry[static_cast<std::size_t>(begin)], triangles);
    });
    for (DeviceFiller const& one : fillers) {
      hold = hold && one.images_hold();
      lower_without_upper += one.lower_without_upper();
    }
  };
  bool const at_once = compares && shared.parts() == 1;  // what is compared comes behind what is stored
  fill({true, at_once});
  if (compares && !at_once) fill({false, true});
  return !compares || (hold && lower_without_upper == 0);
}

}  // namespace

char const* name(DeviceFormat format) {
  switch (format) {
    case DeviceFormat::diagonals:
      return "diagonals";
    case DeviceFormat::sell:
      return "sell";
    case DeviceFormat::csr:
      return "csr";
    case DeviceFormat::merge:
      return "merge";
    case DeviceFormat::vendor:
      return "vendor";
  }
  return "csr";
}

namespace {

// What is empty has an address too: products move pointers before they look whether there is anything.
template <class Numbers>
auto const* address(Numbers const& of) {
  static constexpr typename Numbers::value_type nothing{};
  return of.empty() ? &nothing : of.data();
}

}  // namespace

RowsView DeviceRows::view(float const* rounded) const {
  RowsView view;
  view.format = format;
  view.tiling = tiling;
  view.farthest = farthest;
  view.diagonals = diagonals;
  view.diagonals.value = address(value) + origin;
  view.sell = SellView{address(first_group), address(group), address(mask), address(value), rounded,
                       address(narrow),      address(wide)};
  view.csr = CsrView{address(start), address(wide), address(value), rounded, tiling.threads_per_row};
  if (rounded != nullptr) view.diagonals.rounded = rounded + origin;
  return view;
}

DeviceRows make_device_rows(LocalRows const& rows, Tiling const& tiling, DeviceRequest request, int threads) {
  SharedSlices const shared(rows, tiling, threads);
  DeviceCount const counted = count(shared);
  bool halves = request.halves && is_symmetric_set(counted.offset);
  DeviceRows made;
  made.tiling = tiling;
  made.ghosts_below = rows.ghosts_below();
  made.ghosts_above = rows.ghosts() - rows.ghosts_below();
  made.farthest = counted.farthest;
  made.value_indices = request.value_indices;
  for (;;) {
    choose_layout(made, counted, request, halves);
    if (fill_layout(shared, made, counted, halves)) return made;
    halves = false;  // the triangles differ: store both, in what is then smallest
  }
}

}  // namespace hostless
