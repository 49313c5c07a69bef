#pragma once
// What the kernel is told that keeps as many cells as fit in shared memory from step to step, and how they are
// chosen. Integers alone; the host and kernels compute the same.

#include <algorithm>
#include <array>
#include <cstdint>

#include "hostless/base/host_device.hpp"

namespace hostless::gpu {

constexpr int cached_threads = 1024;

/// A range of cells on three axes, dealt out to boxes: one a block.
struct CachedBoxes {
  int low[3] = {0, 0, 0}, high[3] = {0, 0, 0};
  int count[3] = {0, 1, 1};  ///< boxes along each axis

  HOSTLESS_HOST_DEVICE int boxes() const { return count[0] * count[1] * count[2]; }
  /// First cell of box k along an axis; that of box k + 1 is behind its last.
  HOSTLESS_HOST_DEVICE int begin(int axis, int k) const {
    return low[axis] + static_cast<int>(static_cast<long long>(high[axis] - low[axis]) * k / count[axis]);
  }
  /// Cells of the largest box along an axis.
  HOSTLESS_HOST_DEVICE int most(int axis) const {
    return (high[axis] - low[axis] + count[axis] - 1) / count[axis];
  }
};

/// Of a block: two copies of the largest box and of the cells around it that a step reads.
constexpr std::int64_t cached_shared_bytes(CachedBoxes const& boxes, std::array<int, 3> const& reach,
                                           std::int64_t cell_bytes) {
  std::int64_t bytes = 2 * cell_bytes;
  for (int axis = 0; axis < 3; ++axis) bytes *= boxes.most(axis) + 2 * reach[static_cast<std::size_t>(axis)];
  return bytes;
}

struct CachedRoom {
  std::array<int, 3> reach{};   ///< cells that a step reads beyond its own, along each axis
  std::int64_t cell_bytes = 4;  ///< of all fields
  int blocks = 1;
  std::int64_t shared_bytes = 0;  ///< of a block
};

/// The most rows of a range that fit, from its first one on, in boxes that are stepped soonest; the last axis
/// goes by warps. No box: none fits.
inline CachedBoxes choose_boxes(std::array<int, 3> const& low, std::array<int, 3> const& high,
                                CachedRoom const& room) {
  std::array<int, 3> cells{};
  for (std::size_t axis = 0; axis < 3; ++axis) cells[axis] = high[axis] - low[axis];
  CachedBoxes best;
  if (std::min({cells[0], cells[1], cells[2]}) <= 0) return best;
  std::int64_t const held = room.shared_bytes / (2 * room.cell_bytes);
  std::int64_t least = 0;
  for (int n1 = 1; n1 <= std::min(cells[1], room.blocks); ++n1)
    for (int n2 = 1; n2 <= std::min(cells[2], room.blocks / n1); ++n2) {
      std::int64_t const b1 = (cells[1] + n1 - 1) / n1, b2 = (cells[2] + n2 - 1) / n2;
      std::int64_t const around = (b1 + 2 * room.reach[1]) * (b2 + 2 * room.reach[2]);
      std::int64_t const fit = held / around - 2 * room.reach[0];
      if (fit < 1) continue;
      std::int64_t const most = std::min(room.blocks / (n1 * n2), cells[0]);
      std::int64_t const rows = std::min<std::int64_t>(cells[0], most * fit);
      std::int64_t const b0 = (rows + most - 1) / most;
      std::int64_t const stepped = b0 * b1 * ((b2 + 31) / 32 * 32);
      std::int64_t const cost = stepped + 4 * ((b0 + 2 * room.reach[0]) * around - b0 * b1 * b2);
      std::int64_t const had = best.high[0] - best.low[0];
      if (rows < had || (rows == had && cost >= least)) continue;
      least = cost;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        best.low[axis] = low[axis];
        best.high[axis] = high[axis];
      }
      best.high[0] = low[0] + static_cast<int>(rows);
      best.count[0] = static_cast<int>((rows + b0 - 1) / b0);
      best.count[1] = n1;
      best.count[2] = n2;
    }
  return best;
}

}  // namespace hostless::gpu
