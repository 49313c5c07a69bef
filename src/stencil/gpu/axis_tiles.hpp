#pragma once
// How an axis of a grid is dealt out to windows of one width that overlap: each owns cells of its own, and
// sees so many beyond them as it may step alone. Integers alone; the host and kernels compute the same.

#include "hostless/base/host_device.hpp"
#include "hostless/plan/boxes.hpp"

namespace hostless::gpu {

/// Window k begins at cell low(k) of the axis and has `window` cells. Where the axis does not wrap, the first
/// and the last window lie flush with its ends, where nothing beyond is needed; an axis shorter than a window
/// has one, which reaches beyond its end.
struct AxisTiles {
  int extent = 1, window = 1;
  int depth = 1;  ///< cells beyond the own ones that must be in the window, unless the axis ends there
  int count = 1;
  int unit = 1;  ///< windows, and what they own, begin at multiples of it, but for the last window's begin
  GridBoundary boundary = GridBoundary::dirichlet;

  HOSTLESS_HOST_DEVICE bool wraps() const { return boundary == GridBoundary::periodic; }
  HOSTLESS_HOST_DEVICE int low(int k) const {
    if (wraps()) return own_low(k) - depth;
    return begin(k);
  }
  HOSTLESS_HOST_DEVICE int own_low(int k) const {
    if (k == 0) return 0;
    if (k == count) return extent;
    if (wraps()) return static_cast<int>(static_cast<long long>(k) * extent / count) / unit * unit;
    return (begin(k - 1) + window + begin(k)) / 2 / unit * unit;
  }
  HOSTLESS_HOST_DEVICE int own_high(int k) const { return own_low(k + 1); }
  /// Whether other windows own what lies before, or after, the cells of window k.
  HOSTLESS_HOST_DEVICE bool goes_on_below(int k) const { return wraps() || k > 0; }
  HOSTLESS_HOST_DEVICE bool goes_on_above(int k) const { return wraps() || k < count - 1; }
  /// Cell of the grid, of one at most an extent beyond its ends.
  HOSTLESS_HOST_DEVICE int wrapped(int cell) const {
    if (!wraps()) return cell;
    return cell < 0 ? cell + extent : cell >= extent ? cell - extent : cell;
  }
  /// Whether every window holds what it must, and owns enough for its neighbours to need no third one.
  bool fits() const {
    if (depth > extent) return false;
    for (int k = 0; k < count; ++k) {
      if (count > 1 || wraps()) {
        if (own_high(k) - own_low(k) < 2 * depth) return false;
      }
      if (goes_on_below(k) && own_low(k) - depth < low(k)) return false;
      if (goes_on_above(k) && own_high(k) + depth > low(k) + window) return false;
    }
    return wraps() || count > 1 || extent <= window;
  }
  /// With the fewest windows, `least` at least; none fits: count 0.
  static AxisTiles fewest(int extent, int window, int depth, int unit, GridBoundary boundary, int least = 1) {
    AxisTiles tiles{extent, window, depth, least, unit, boundary};
    while (tiles.count <= extent && !tiles.fits()) ++tiles.count;
    if (tiles.count > extent) tiles.count = 0;
    return tiles;
  }

 private:
  HOSTLESS_HOST_DEVICE int begin(int k) const {
    if (count == 1) return 0;
    if (k == count - 1) return extent - window;
    return static_cast<int>(static_cast<long long>(k) * (extent - window) / (count - 1)) / unit * unit;
  }
};

}  // namespace hostless::gpu
