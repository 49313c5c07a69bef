#pragma once
// What a persistent kernel keeps in shared memory: decided from shapes alone, so that the model of runs can
// ask before anything is allocated.

#include <algorithm>
#include <cstdint>

#include "operate/device_rows.hpp"
#include "run/gpu/launch.hpp"

namespace hostless::gpu {

/// How neighbours' values of the gathered field may be formed where they are read (decision 0006): what the
/// text offers, and all ranks can.
enum class FusedUpdate : std::uint8_t { no, by_memory, by_flagged_words };

/// In doubles of one block.
struct OnChip {
  std::int64_t fields = 0;          ///< all that could be kept of fields
  std::int64_t fields_on_chip = 0;  ///< what is
  std::int64_t matrix = 0, window = 0, reach = 0;
  bool all = false;  ///< matrix, vectors, as many as needed, and window fit together
  std::int64_t values() const { return fields_on_chip + matrix + window; }
  FusedUpdate fused_update = FusedUpdate::no;
  bool fuses() const { return fused_update != FusedUpdate::no; }
};

/// Of rows as kernels or the host see them.
struct OnChipRows {
  DeviceFormat format;
  DiagonalsView const& diagonals;
  std::int64_t farthest;
  int threads_per_row;  ///< that share rows of CSR
};

/// Entries of the vector that one block reads at most for one tile: its rows, those of accumulators
/// that have no block row any more, and as far as all of them reach on both sides.
inline std::int64_t window_of(OnChipRows const& rows, Layout const& layout) {
  Tiling const& t = layout.tiling;
  std::int64_t most = 0;
  for (int s = 0; s < t.slices; s += slices_of_block) {
    int const last = std::min(s + slices_of_block, t.slices) - 1;
    most = std::max(most, t.first(last) - t.first(s) + std::int64_t{layout.slots} * Tiling::accumulators);
  }
  return (most + 2 * rows.farthest) * t.block;
}

/// Owned ones of a text, and how many of them must be on chip where everything else is.
struct OnChipFields {
  int all, needed;
};

/// ranks: several, whose barriers cost more. shared: bytes that a block may have
/// beside what its kernel needs itself; most: of these, what leaves the first-level cache enough room.
inline OnChip plan_on_chip(OnChipRows const& rows, Layout const& layout, OnChipFields fields, bool ranks,
                           std::int64_t shared, std::int64_t most, FusedUpdate fused_update) {
  constexpr std::int64_t value = sizeof(double);
  std::int64_t const slot_values = std::int64_t{block_threads} * layout.turns * layout.slots;
  DiagonalsView const& d = rows.diagonals;
  OnChip k;
  k.fields = slot_values * layout.tiling.block * fields.all;
  std::int64_t const needed = slot_values * layout.tiling.block * fields.needed;
  std::int64_t const matrix = slot_values * d.count;
  std::int64_t const reach = d.count > 0 ? std::max({0, -d.offset[0], d.offset[d.count - 1]}) : 0;
  std::int64_t const window = fused_update == FusedUpdate::by_flagged_words ? slot_values + 2 * reach : 0;
  k.all = fused_update != FusedUpdate::by_memory && rows.format == DeviceFormat::diagonals &&
          layout.tiling.block == 1 && layout.turns == 1 &&
          (needed + matrix + window) * value <= shared;  // then little is loaded: the cache needs no room
  std::int64_t const room = (k.all ? shared : most) / value;
  std::int64_t const around = window_of(rows, layout);
  // One window for all rows of a block; several, one a turn, cost more than they save (measured on hex8).
  // Threads that share rows read the vector from memory; a window for them has not been measured. Single rows
  // read the vector seldom: a window for them is there to be formed in, not much wider than the block, and
  // with one rank not worth what it pushes out (5-point: 38.1 us without, 39.8 with; on two GPUs 27.5, 22.7).
  bool const worthwhile =
      layout.tiling.block > 1 ||
      (fused_update != FusedUpdate::no && around <= 2 * slot_values && (ranks || k.fields + around <= room));
  bool const windowed =
      !k.all && layout.turns == 1 && around <= room && rows.threads_per_row == 1 && worthwhile;
  k.reach = k.all ? reach : windowed ? rows.farthest * layout.tiling.block : 0;
  k.window = k.all ? window : windowed ? around : 0;
  k.matrix = k.all ? matrix : 0;
  k.fields_on_chip = std::min(k.fields, room - k.window - k.matrix);
  if (k.window > 0)
    k.fused_update = k.all ? FusedUpdate::by_flagged_words : std::min(fused_update, FusedUpdate::by_memory);
  return k;
}

/// Of the kernel of several right-hand sides: what fits of the fields, the first ones first. The gathered one
/// is read where it lies.
inline OnChip plan_columns_on_chip(Layout const& layout, int fields, int columns, std::int64_t most) {
  OnChip k;
  k.fields =
      std::int64_t{block_threads} * layout.turns * layout.slots * layout.tiling.block * fields * columns;
  k.fields_on_chip = std::min(k.fields, most / static_cast<std::int64_t>(sizeof(double)));
  return k;
}

}  // namespace hostless::gpu
