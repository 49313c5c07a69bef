#pragma once
// How the slices of a rank are dealt out to the blocks of its GPU.

#include <algorithm>
#include <cstdint>

#include "run/gpu/launch.hpp"

namespace hostless::gpu {

/// batch: block rows of an accumulator in flight; free_order: sums need not be those of the tree over tiles.
inline Layout lay_out(Tiling const& tiling, int multiprocessors, int batch, bool free_order) {
  Layout layout;
  layout.tiling = tiling;
  layout.tiles = (tiling.slices + slices_of_block - 1) / slices_of_block;
  layout.blocks = std::min(layout.tiles, multiprocessors);
  layout.turns = (layout.tiles + layout.blocks - 1) / layout.blocks;
  layout.partials = free_order ? layout.blocks : layout.tiles;
  layout.partials_a_block = free_order ? 1 : layout.turns;
  std::int64_t longest = 0;
  for (int s = 0; s < tiling.slices; ++s) longest = std::max(longest, tiling.first(s + 1) - tiling.first(s));
  auto const slots = static_cast<int>((longest + Tiling::accumulators - 1) / Tiling::accumulators);
  layout.slots = (slots + batch - 1) / batch * batch;
  return layout;
}

}  // namespace hostless::gpu
