#include "stencil/cache_room.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "hostless/machine/topology.hpp"

namespace hostless {

CacheRoom const& cache_room() {
  static CacheRoom const found = [] {
    CacheRoom room;
    Topology const topology = find_topology();
    for (CacheLevel const& cache : topology.caches)
      if (cache.level <= 2 && cache.count >= topology.cores)
        room.of_core.own = std::max(room.of_core.own, cache.bytes);
    for (CacheLevel const& cache : topology.caches)
      if (cache.level == 1) room.of_core.nearest = cache.bytes;
    room.share = room.of_core.own;
    for (CacheLevel const& cache : topology.caches)
      room.share = std::max(room.share, cache.bytes * cache.count / std::max(topology.cores, 1));
    return room;
  }();
  return found;
}

std::int64_t plain_bytes(StencilKernel const& kernel, BoxPartition const& partition, CacheRoom const& room) {
  Grid const& grid = partition.grid;
  bool wraps = false;
  std::array<double, 3> grown = {1, 1, 1};  // cells of a step of sixteen, in their mean, by axis
  for (std::size_t a = 0; a < 3; ++a) {
    if (grid.boundary[a] != GridBoundary::periodic || kernel.radius[a] == 0) continue;
    wraps = true;
    if (partition.ranks_along[a] == 1)
      grown[a] = 1 + 15.0 * kernel.radius[a] / static_cast<double>(grid.extent[a]);
  }
  if (kernel.axes == 3) return wraps ? room.share : room.share / 2;
  if (grown[2] > 1.6) return std::numeric_limits<std::int64_t>::max();
  if (grown[0] * grown[1] * grown[2] > 1.1) return room.share;
  return wraps ? room.share / 2 : room.of_core.own / 2;
}

}  // namespace hostless
