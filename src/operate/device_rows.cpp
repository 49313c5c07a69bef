#include "operate/device_rows.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <span>

#include "operate/device_layout.hpp"
#include "storage.hpp"

namespace hostless {
namespace {

class DeviceCounter {
 public:
  explicit DeviceCounter(Tiling const& tiling) : tiling_(tiling) {
    counted_.first_group.assign(static_cast<std::size_t>(tiling.slices) + 1, 0);
  }

  void add(int slice, std::int64_t first_leaf, LocalPanel const& panel) {
    counted_.entries += panel.offset.back();
    int const b = tiling_.block;
    auto const leaves = (static_cast<std::int64_t>(panel.offset.size()) - 1) / b;
    for (std::int64_t i = 0; i < leaves; ++i) {
      leaf_columns(panel, i * b, b, columns_);
      if (i % tile_leaves == 0) begin_group();
      for (std::int32_t const column : columns_) {
        least_ = std::min(least_, column);
        most_ = std::max(most_, column);
        auto const offset = static_cast<std::int32_t>(column - (first_leaf + i));
        counted_.farthest = std::max<std::int64_t>(counted_.farthest, std::abs(offset));
        add_offset(offset);
      }
      width_[static_cast<std::size_t>(leaves_++)] = static_cast<std::int32_t>(columns_.size());
      if (i + 1 == leaves || (i + 1) % tile_leaves == 0)
        counted_.place_group(tiling_.block, std::span(width_).first(static_cast<std::size_t>(leaves_)),
                             least_, most_);
    }
    auto const next = static_cast<std::int32_t>(counted_.group.size());
    std::fill(counted_.first_group.begin() + slice + 1, counted_.first_group.end(), next);
  }
  DeviceCount take() { return std::move(counted_); }

 private:
  void begin_group() {
    counted_.group.emplace_back();
    least_ = INT32_MAX;
    most_ = INT32_MIN;
    leaves_ = 0;
  }
  void add_offset(std::int32_t offset) {
    if (!counted_.few_diagonals) return;
    auto const at = std::lower_bound(counted_.offset.begin(), counted_.offset.end(), offset);
    if (at != counted_.offset.end() && *at == offset) return;
    counted_.offset.insert(at, offset);
    if (counted_.offset.size() > most_diagonals) counted_.few_diagonals = false;
  }

  Tiling tiling_;
  DeviceCount counted_;
  std::vector<std::int32_t> columns_;
  std::array<std::int32_t, tile_leaves> width_{};  // of the group's leaves
  std::int32_t least_ = 0, most_ = 0, leaves_ = 0;
};

bool is_zero(double const* block, int square) {
  for (int k = 0; k < square; ++k) {
    std::uint64_t bits;
    std::memcpy(&bits, block + k, sizeof bits);
    if (bits != 0) return false;
  }
  return true;
}

/// Writes the values of one layout, leaf by leaf.
class DeviceFiller {
 public:
  explicit DeviceFiller(DeviceRows& to) : to_(to), block_(to.tiling.block), square_(block_ * block_) {}

  void add(int slice, std::int64_t first_leaf, LocalPanel const& panel) {
    if (to_.places) add_diagonal_places(first_leaf, panel);
    if (is_csr(to_.format)) return add_csr(first_leaf, panel);
    auto const leaves = (static_cast<std::int64_t>(panel.offset.size()) - 1) / block_;
    for (std::int64_t i = 0; i < leaves; ++i) {
      leaf_columns(panel, i * block_, block_, columns_);
      leaf_blocks(panel, i * block_, block_, columns_, blocks_);
      if (to_.format == DeviceFormat::diagonals) {
        add_diagonals(first_leaf + i);
      } else {
        add_sell(slice, first_leaf + i);
      }
    }
  }
  /// Among owned rows and columns every block below the main diagonal is the transpose of one above it, and
  /// there are as many of both. Blocks of zeros do not count: they read as what is not there.
  bool halves_hold() const { return to_.places || (halves_hold_ && lower_ == upper_); }

 private:
  /// `leaf` may lie before the first one.
  double& at_diagonal(std::int64_t leaf, std::int32_t plane, int entry) {
    DiagonalsView const& d = to_.diagonals;
    static_assert(tile_leaves == 32);
    std::int64_t const at =
        block_ == 1 ? plane * d.stride + leaf : ((leaf >> 5) * d.planes + plane + entry) * 32 + (leaf & 31);
    return to_.value[static_cast<std::size_t>(to_.origin + at)];
  }
  void add_diagonals(std::int64_t leaf) {
    DiagonalsView const& d = to_.diagonals;
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      double const* const block = blocks_.data() + static_cast<std::int64_t>(k) * square_;
      auto const offset = static_cast<std::int32_t>(columns_[k] - leaf);
      auto const at = std::lower_bound(d.offset, d.offset + d.count, offset) - d.offset;
      bool const ghost = columns_[k] < 0 || columns_[k] >= to_.tiling.leaves;
      bool const counts = !ghost && !is_zero(block, square_);
      if (at < d.mirrored) {
        lower_ += counts ? 1 : 0;
        for (int c = 0; c < block_; ++c) {
          for (int j = 0; j < block_; ++j) {
            double& image = at_diagonal(columns_[k], d.plane[at], j * block_ + c);
            double const& entry = block[c * block_ + j];
            if (ghost) {
              image = entry;  // the row of a ghost is not here: its place holds what this row reads there
            } else if (!to_.places && std::memcmp(&entry, &image, sizeof(double)) != 0) {
              halves_hold_ = false;
            }
          }
        }
        continue;
      }
      upper_ += counts && offset > 0 ? 1 : 0;
      for (int e = 0; e < square_; ++e) at_diagonal(leaf, d.plane[at], e) = block[e];
    }
  }
  // Lanes past the slice's end have no leaf and are never multiplied.
  void add_sell(int slice, std::int64_t leaf) {
    std::int64_t const inside = leaf - to_.tiling.first(slice);
    auto const lane = static_cast<int>(inside % tile_leaves);
    DeviceGroup const& group =
        to_.group[static_cast<std::size_t>(to_.first_group[slice] + inside / tile_leaves)];
    std::int64_t before = 0;
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      SellPlace const place =
          sell_place(group, to_.mask.data() + group.mask, lane, static_cast<int>(k), before);
      before += place.stride;
      auto const at = static_cast<std::size_t>(group.column + place.before + place.rank);
      if (group.wide != 0) {
        to_.wide[at] = columns_[k];
      } else {
        to_.narrow[at] = static_cast<std::uint16_t>(columns_[k] - group.base);
      }
      double* const to = to_.value.data() + group.value + place.before * square_ + place.rank;
      for (int e = 0; e < square_; ++e) to[e * place.stride] = blocks_[k * square_ + e];
    }
  }
  void add_csr(std::int64_t first_leaf, LocalPanel const& panel) {
    auto const row = static_cast<std::size_t>(first_leaf * block_);
    auto const before = static_cast<std::int64_t>(to_.value.size());
    for (std::size_t i = 1; i < panel.offset.size(); ++i) to_.start[row + i] = before + panel.offset[i];
    to_.value.insert(to_.value.end(), panel.value.begin(), panel.value.begin() + panel.offset.back());
    to_.wide.insert(to_.wide.end(), panel.column.begin(), panel.column.begin() + panel.offset.back());
  }

  void add_diagonal_places(std::int64_t first_leaf, LocalPanel const& panel) {
    for (std::size_t i = 0; i + 1 < panel.offset.size(); ++i) {
      std::int64_t const row = first_leaf * block_ + static_cast<std::int64_t>(i),
                         first = row / block_ * block_;
      for (std::int64_t k = panel.offset[i]; k < panel.offset[i + 1]; ++k) {
        std::int64_t const inside = panel.column[static_cast<std::size_t>(k)] - first;
        if (inside >= 0 && inside < block_)
          to_.diagonal_place[static_cast<std::size_t>(row * block_ + inside)] =
              panel.value[static_cast<std::size_t>(k)];
      }
    }
  }

  DeviceRows& to_;
  int block_, square_;
  std::vector<std::int32_t> columns_;
  std::vector<double> blocks_;
  bool halves_hold_ = true;
  std::int64_t lower_ = 0, upper_ = 0;
};

bool fill_layout(LocalRows const& rows, DeviceRows& to, DeviceCount const& counted, bool halves) {
  DeviceSizes const sizes = lay_out(to, counted, halves);
  auto const values = static_cast<std::size_t>(sizes.value), wide = static_cast<std::size_t>(sizes.wide);
  if (is_csr(to.format)) {
    to.start.assign(static_cast<std::size_t>(to.tiling.rows()) + 1, 0);
    to.value.clear();
    to.value.reserve(values);
    to.wide.clear();
    to.wide.reserve(wide);
  } else {
    to.value.assign(values, 0.0);
    to.narrow.assign(static_cast<std::size_t>(sizes.narrow), 0);
    to.wide.assign(wide, 0);
  }
  if (to.places) to.diagonal_place.assign(static_cast<std::size_t>(to.tiling.rows() * to.tiling.block), 0.0);
  DeviceFiller filler(to);
  for_each_panel(rows, to.tiling, [&](int slice, std::int64_t first_leaf, LocalPanel const& panel) {
    filler.add(slice, first_leaf, panel);
  });
  return to.format != DeviceFormat::diagonals || to.diagonals.mirrored == 0 || filler.halves_hold();
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
template <class T>
T const* address(std::vector<T> const& of) {
  static constexpr T nothing{};
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
  view.csr = CsrView{address(start), address(wide), address(value), rounded, tiling.row_lanes};
  if (rounded != nullptr) view.diagonals.rounded = rounded + origin;
  return view;
}

DeviceRows make_device_rows(LocalRows const& rows, Tiling const& tiling, DeviceRequest request) {
  DeviceCounter counter(tiling);
  for_each_panel(rows, tiling, [&](int slice, std::int64_t first_leaf, LocalPanel const& panel) {
    counter.add(slice, first_leaf, panel);
  });
  DeviceCount const counted = counter.take();
  bool halves = request.halves && is_symmetric_set(counted.offset);
  DeviceRows made;
  made.tiling = tiling;
  made.ghosts_below = rows.ghosts_below();
  made.ghosts_above = rows.ghosts() - rows.ghosts_below();
  made.farthest = counted.farthest;
  made.places = request.places;
  for (;;) {
    choose_layout(made, counted, request, halves);
    if (fill_layout(rows, made, counted, halves)) return made;
    halves = false;  // the triangles differ: store both, in what is then smallest
  }
}

}  // namespace hostless
