#pragma once
// What a layout for a GPU is decided from, and where its arrays' values lie: for rows that the host has and
// for those that a GPU makes.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "operate/device_rows.hpp"

namespace hostless {

/// What the first pass learns of all candidates.
struct DeviceCount {
  std::vector<std::int32_t> offset;  ///< rising; of no use where there are too many
  bool few_diagonals = true;
  std::vector<std::int32_t> first_group;
  std::vector<DeviceGroup> group;
  std::vector<std::uint32_t> mask;
  std::int64_t blocks = 0, narrow = 0, wide = 0;  ///< of sliced ELL
  std::vector<std::int64_t> first_entry;  ///< [slices + 1] of a rank's rows; empty: of rows that a GPU makes
  std::int64_t entries = 0;
  std::int64_t farthest = 0;  ///< block rows between a row and its columns

  /// Ends the last group: its block rows have `width` blocks, whose columns lie in [least, most].
  void lay_out_group(int block, std::span<std::int32_t const> width, std::int32_t least, std::int32_t most);
  void add_offset(std::int32_t to);
  /// The slices behind these.
  void append(DeviceCount const& next, int block);
};

/// Of value, narrow and wide; of CSR they are no more than reserved.
struct DeviceSizes {
  std::int64_t value = 0, narrow = 0, wide = 0;
};

/// The groups of all slices. shape(first block row, widths) fills in how many blocks each of the group's
/// block rows has, and returns {least, most} of their columns.
template <class Shape>
void count_groups(Tiling const& tiling, DeviceCount& counted, Shape const& shape) {
  std::array<std::int32_t, tile_block_rows> width{};
  counted.first_group.push_back(0);
  for (int s = 0; s < tiling.slices; ++s) {
    for (std::int64_t block_row = tiling.first(s); block_row < tiling.first(s + 1);
         block_row += tile_block_rows) {
      auto const block_rows = std::min<std::int64_t>(tile_block_rows, tiling.first(s + 1) - block_row);
      auto const widths = std::span(width).first(static_cast<std::size_t>(block_rows));
      auto const [least, most] = shape(block_row, widths);
      counted.group.emplace_back();
      counted.lay_out_group(tiling.block, widths, static_cast<std::int32_t>(least),
                            static_cast<std::int32_t>(most));
    }
    counted.first_group.push_back(static_cast<std::int32_t>(counted.group.size()));
  }
}

/// Whether every diagonal has its mirror image.
bool is_symmetric_set(std::vector<std::int32_t> const& offset);
/// Chooses the format, and says why.
/// Errors  usage  a format that was asked for and does not fit
void choose_layout(DeviceRows& made, DeviceCount const& counted, DeviceRequest request, bool halves);
/// Everything of the chosen layout but values and columns.
DeviceSizes lay_out(DeviceRows& made, DeviceCount const& counted, bool halves);

}  // namespace hostless
