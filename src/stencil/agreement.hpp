#pragma once

#include <cstdint>

#include "hostless/stencil/stencil.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// Errors  usage  an axis without cells, or shorter than the stencil looks
void check_grid(Grid const& grid, StencilKernel const& kernel);
/// As the options say, or with the least surface.
/// Errors  usage  a number of boxes that is not that of the ranks, or more than cells along an axis
BoxPartition partition_for(Group const& group, Grid const& grid, StencilKernel const& kernel,
                           StencilOptions const& options);
/// The nodes that the options name; none: all ranks are on one.
NodeMap nodes_of(StencilOptions const& options, BoxPartition const& partition);
/// Of all that must be equal on all ranks.
std::uint64_t hash_of(Grid const& grid, StencilKernel const& kernel, StencilOptions const& options);

}  // namespace hostless
