#pragma once
// What the kernels are told that step any stencil, a thread a cell.

#include <cstdint>

#include "hostless/plan/boxes.hpp"

namespace hostless::gpu {

/// Cell (a, b, c) of an array is at a * stride[0] + b * stride[1] + c. Blocks take tiles of `columns` cells
/// of as many rows as there are threads for; rows run along the second axis, or the first where that is one
/// cell.
template <class T, int arrays, int fields>
struct PlainCall {
  T const* in[arrays] = {};  ///< fields, then coefficients
  T* out[fields] = {};
  int extent[3] = {1, 1, 1};
  GridBoundary boundary[3] = {};
  std::int64_t stride[2] = {};
  int low[3] = {}, high[3] = {};  ///< of what is stepped at all
  int columns_log2 = 5;
  int row_axis = 0;                     ///< 0 or 1
  int column_tiles = 1, row_tiles = 1;  ///< of a plane across the other axis
  std::int64_t tiles = 0;
};

/// A barrier of all blocks of a kernel.
struct BlockBarrier {
  std::uint32_t* arrived = nullptr;  ///< blocks, by all barriers since it was cleared
  std::uint32_t* lost = nullptr;     ///< set: somebody waited in vain
  std::uint32_t before = 0;          ///< what `arrived` was before this launch
  std::uint64_t deadline_ns = 0;     ///< of one wait
};

}  // namespace hostless::gpu
