#pragma once
// What the kernel is told that keeps the whole grid on chip, tile by tile, and how tiles are chosen.

#include <cstdint>

#include "stencil/gpu/axis_tiles.hpp"

namespace hostless::gpu {

/// Of a block: its window is `warps` times `rows` rows of 32 times `width` cells, in registers.
struct ResidentShape {
  int width = 1, rows = 1, warps = 1;
};

/// Warps of a block at most, whose threads have `words` registers of 32 bits with cells each, and what they
/// compute with beside: a quarter of a multiprocessor has 16,384, for every fourth warp.
constexpr int most_resident_warps(int words) { return words > 120 ? 8 : words > 72 ? 12 : 16; }

/// Two axes. Cell (y, x) of field f is in[f][(y - first_row) * pitch + x].
template <class T, int fields>
struct ResidentCall {
  T const* in[fields] = {};
  T* out[fields] = {};
  std::int64_t pitch = 0;
  AxisTiles y, x;
  int warps = 1;
  std::int64_t steps = 0;  ///< even, as the depth is
  /// Words of both parities, of all cells, of which those near a tile's border are used: zero when made. Of
  /// so many cells as registers hold they are counted in 32 bits.
  std::uint64_t* words = nullptr;
  int row_words = 0;        ///< from one row to the next
  std::uint32_t epoch = 1;  ///< of the first exchange: after that of the launch before
  /// Of several GPUs one: its first row of tiles, and the rows of the grid that it holds. `first_row` is that
  /// of `in` and `out`, where halos may lie before what it owns.
  int first_tile = 0, first_row = 0, own_low = 0, own_high = 0;
  /// Words of the GPUs that own what comes before and after, in their memory; null: none does.
  std::uint64_t* beyond[2] = {};
  std::uint32_t* lost = nullptr;         ///< set: a wait was in vain, and no cell was stored
  std::uint64_t deadline_ns = 0;         ///< of one wait
  std::uint32_t all_bits = 0xffffffffu;  ///< which compilers do not know

  HOSTLESS_HOST_DEVICE int depth() const { return y.depth; }  ///< steps between two exchanges
};

/// Bytes of shared memory of a block.
constexpr std::int64_t resident_shared_bytes(ResidentShape const& shape, int depth, int fields,
                                             int value_bytes) {
  std::int64_t const row = 32 * shape.width;
  std::int64_t const border = 4 * std::int64_t{shape.warps} * row;
  std::int64_t const frame = 4 * depth * row + std::int64_t{shape.warps} * shape.rows * 4 * depth;
  return (border + frame) * fields * value_bytes;
}

}  // namespace hostless::gpu
