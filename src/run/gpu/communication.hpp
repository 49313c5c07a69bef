#pragma once
// What an iteration pays for barriers and halos alone (Ismayilov et al., figures 1b and 6): nothing is
// computed, and every sum and every ghost has a value that can be told beforehand. Plain functions, which the
// host tests too.

#include <cstdint>

#include "run/gpu/launch.hpp"

namespace hostless::gpu {

/// One step of it. What cg says an iteration: two sums, the halo with the second of them or before both;
/// what pipelined-cg says: one sum with the halo, and a barrier after which ghosts may be written again.
struct Communication {
  int values = 1;         ///< of a sum, 1 to widest_sum
  int sums = 1;           ///< 1 or 2
  bool exchanges = true;  ///< the halo
};

/// How ghosts come, which is up to what solves of the same matrix do.
enum class GhostWay : std::uint8_t {
  none,
  with_only_sum,  ///< in memory, behind the barrier of the one sum; then a barrier more
  with_sum,  ///< in memory, behind the barrier of the second sum, where the next step forms its direction
  as_flagged_words,  ///< the same, but they say for themselves when they have arrived
  before_sums        ///< in memory, behind a barrier of their own
};
inline GhostWay ghost_way(Communication const& what, Layout const& layout) {
  if (!what.exchanges) return GhostWay::none;
  if (what.sums == 1) return GhostWay::with_only_sum;
  if (!layout.fuses) return GhostWay::before_sums;
  return layout.halo_source_flagged_words[0] != nullptr ? GhostWay::as_flagged_words : GhostWay::with_sum;
}
inline char const* describe(GhostWay way) {
  switch (way) {
    case GhostWay::none:
      return "no halo";
    case GhostWay::with_only_sum:
      return "the halo in memory behind the barrier of the sum, then a barrier";
    case GhostWay::with_sum:
      return "the halo in memory behind the barrier of the second sum";
    case GhostWay::as_flagged_words:
      return "the halo as flagged words beside the second sum";
    case GhostWay::before_sums:
      return "the halo in memory behind a barrier of its own";
  }
  return "";
}

/// What value k of a step's sums is multiplied with; steps differ from those near them.
HOSTLESS_HOST_DEVICE double step_weight(int k, std::int64_t step) {
  return static_cast<double>((k + 1) * (1 + (static_cast<int>(step) & 255)));
}
/// What a lane of a warp contributes for one tile, before that. Whole numbers, whose sums are exact
/// in any order: whatever is lost, doubled or stale shows.
HOSTLESS_HOST_DEVICE double known_part(int lane, int tile, int rank) {
  return static_cast<double>(1 + lane) * static_cast<double>(1 + tile) * static_cast<double>(1 + rank);
}
/// The sum of all parts of all ranks. partials: of each rank, its tiles.
HOSTLESS_HOST_DEVICE double known_parts(int const* partials, int ranks) {
  constexpr double of_tile = block_threads / 32 * (32 * 33 / 2);
  double sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    double const count = partials[rank];
    sum += (rank + 1) * (of_tile * (count * (count + 1) / 2));
  }
  return sum;
}
/// What a row sends in a step; id: its number in the whole matrix.
HOSTLESS_HOST_DEVICE double known_ghost(double id, std::int64_t step) {
  return __builtin_fma(id, 1024.0, static_cast<double>(static_cast<int>(step) & 1023));
}

/// Whether rows of these block rows read ghosts.
HOSTLESS_HOST_DEVICE bool reads_ghosts(Layout const& layout, std::int64_t begin, std::int64_t end) {
  return (layout.ghosts_below > 0 && begin < layout.farthest) ||
         (layout.ghosts_above > 0 && end + layout.farthest > layout.tiling.block_rows);
}
/// Every ghost is looked at by one of the blocks that read some: block `mine` of `readers`, which takes the
/// ghosts [mine * threads, ...) and so on in turn; mine < 0: this block reads none.
struct GhostShare {
  int mine, readers;
};
HOSTLESS_HOST_DEVICE GhostShare ghost_share(Layout const& layout, int rounds, int block) {
  GhostShare share{-1, 0};
  for (int other = 0; other < layout.blocks; ++other) {
    bool reads = rounds > 1;  // what is handed on concerns all
    for (int tile = other; tile < layout.tiles && !reads; tile += layout.blocks) {
      int const first = tile * slices_of_block, end = first + slices_of_block;
      int const slices = layout.tiling.slices;
      reads =
          reads_ghosts(layout, layout.tiling.first(first), layout.tiling.first(end < slices ? end : slices));
    }
    if (!reads) continue;
    if (other == block) share.mine = share.readers;
    ++share.readers;
  }
  return share;
}
/// Offset of ghost g, counted from the lowest.
HOSTLESS_HOST_DEVICE std::int32_t ghost_row(Layout const& layout, std::int32_t ghost) {
  return ghost < layout.ghosts_below
             ? ghost - layout.ghosts_below
             : static_cast<std::int32_t>(layout.tiling.rows()) + ghost - layout.ghosts_below;
}

}  // namespace hostless::gpu
