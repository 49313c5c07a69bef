#pragma once

#include <cstdint>

#include "hostless/plan/boxes.hpp"
#include "hostless/stencil/kernel.hpp"
#include "stencil/pass.hpp"

namespace hostless {

/// Bytes of caches.
struct CacheRoom {
  CoreCaches of_core;
  std::int64_t share = 0;  ///< a core's of the one nearest to memory
};
/// Of this machine, found once.
CacheRoom const& cache_room();

/// Bytes of a box whose steps are as fast one by one as blocked (docs/performance-cpu.md): of three axes, a step is as
/// long about its rows as about what the last cache delivers, and an axis that wraps has halos in blocked ones alone: half
/// of the last cache must be too small before these pay, all of it where they are a tenth of the cells, and of very short
/// rows they never do.
std::int64_t plain_bytes(StencilKernel const& kernel, BoxPartition const& partition, CacheRoom const& room);

}  // namespace hostless
