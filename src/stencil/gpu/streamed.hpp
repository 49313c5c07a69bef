#pragma once
// What the kernel is told that takes several steps of a grid in memory in one pass.

#include <cstdint>

#include "stencil/gpu/axis_tiles.hpp"

namespace hostless::gpu {

/// Two axes. Cell (y, x) of field f is in[f][y * pitch + x]; `in` and `out` are different memory, rows begin
/// at multiples of 32 bytes.
template <class T, int fields>
struct StreamedCall {
  T const* in[fields] = {};
  T* out[fields] = {};
  std::int64_t pitch = 0;
  int rows = 1;
  GridBoundary rows_boundary = GridBoundary::dirichlet;
  AxisTiles x;         ///< strips: a warp steps one from a chunk's first row to its last
  int chunk_rows = 1;  ///< rows that a warp makes
  int chunks = 1;
  std::uint32_t all_bits = 0xffffffffu;  ///< which compilers do not know
};

}  // namespace hostless::gpu
