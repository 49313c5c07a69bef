#pragma once
// What a layout for a GPU is decided from, and where its arrays' values lie: for rows that the host has and
// for those that a GPU makes.

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
  std::int64_t farthest = 0;  ///< leaves between a row and its columns

  /// Ends the last group: its leaves have `width` blocks, whose columns lie in [least, most].
  void place_group(int block, std::span<std::int32_t const> width, std::int32_t least, std::int32_t most);
  void add_offset(std::int32_t to);
  /// The slices behind these.
  void append(DeviceCount const& next, int block);
};

/// Of value, narrow and wide; of CSR they are no more than reserved.
struct DeviceSizes {
  std::int64_t value = 0, narrow = 0, wide = 0;
};

/// Whether every diagonal has its mirror image.
bool is_symmetric_set(std::vector<std::int32_t> const& offset);
/// Chooses the format, and says why.
/// Errors  usage  a format that was asked for and does not fit
void choose_layout(DeviceRows& made, DeviceCount const& counted, DeviceRequest request, bool halves);
/// Everything of the chosen layout but values and columns.
DeviceSizes lay_out(DeviceRows& made, DeviceCount const& counted, bool halves);

}  // namespace hostless
