#pragma once
// How many threads step a grid where --ranks has not said.

#include <cstdint>
#include <vector>

#include "ranks.hpp"
#include "stencil/grid_options.hpp"

namespace hostless {

/// --ranks-along without --ranks: as many threads, or processes of this machine, as it has boxes. Of MPI it stays open.
void take_ranks_along(RankOptions& ranks, DealtOptions const& dealt);

/// Settles RankOptions::ranks where the words leave it open: as many threads as are worth it for so many steps
/// (ranks_worth), where ranks are threads of this process; else it stays open. shape, value_bytes  of the grid
void settle_ranks(RankOptions& ranks, GridWords const& grid, DealtOptions const& dealt,
                  std::vector<std::int64_t> const& shape, std::size_t value_bytes, std::int64_t steps);

}  // namespace hostless
