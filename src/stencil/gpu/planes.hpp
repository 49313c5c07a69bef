#pragma once
// What the kernel is told that takes several steps of a grid of three axes in one pass over memory.

#include <cstdint>

#include "stencil/gpu/axis_tiles.hpp"

namespace hostless::gpu {

/// Of a block: its window is threads_y * rows rows of threads_x * width cells.
struct PlanesShape {
  int width = 1, rows = 1, steps = 0;
  int most_threads = 1;  ///< for which the kernel was compiled
  int threads_y = 1, threads_x = 1;
  int threads() const { return threads_y * threads_x; }
};

/// Cell (z, y, x) of field f is in[f][z * stride[0] + y * stride[1] + x]; `in` and `out` are different memory,
/// rows begin at multiples of 32 bytes. Windows lie within the grid, but where an axis wraps.
template <class T, int fields>
struct PlanesCall {
  T const* in[fields] = {};
  T* out[fields] = {};
  std::int64_t stride[2] = {};
  int planes = 1;
  GridBoundary planes_boundary = GridBoundary::dirichlet;
  AxisTiles y, x;        ///< windows: a block steps one from a chunk's first plane to its last
  int threads_x = 1;     ///< of a row of the window
  int chunk_planes = 1;  ///< planes that a block makes
};

/// Bytes of shared memory of a block.
constexpr std::int64_t planes_shared_bytes(PlanesShape const& shape, int fields, int value_bytes) {
  std::int64_t const of_thread = std::int64_t{shape.rows > 1 ? 2 : 1} * shape.width + 2 * shape.rows;
  std::int64_t const coming = std::int64_t{shape.rows} * shape.width;
  return 2 * (of_thread * shape.steps + coming) * shape.most_threads * fields * value_bytes;
}

}  // namespace hostless::gpu
