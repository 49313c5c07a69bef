#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hostless/stencil/stencil.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// Errors  usage  an axis without cells, or shorter than the stencil looks
void check_grid(Grid const& grid, StencilKernel const& kernel);
/// As the options say, or with the least surface.
/// Errors  usage  a number of boxes that is not that of the ranks, or more than cells along an axis
BoxPartition partition_for(int ranks, Grid const& grid, StencilKernel const& kernel,
                           StencilOptions const& options);
/// The nodes that the options name; none: all ranks are on one.
NodeMap nodes_of(StencilOptions const& options, BoxPartition const& partition);
/// Of all that must be equal on all ranks.
std::uint64_t hash_of(Grid const& grid, StencilKernel const& kernel, StencilOptions const& options);

/// What `check` says is wrong, which throws a usage error; empty: nothing.
std::string refusal_of(std::function<void()> const& check);
/// Of a call of `run` on a rank, after so many steps: what must be equal on all ranks, as numbers that travel
/// with a sum. why: as refusal_of
std::vector<double> numbers_of(std::int64_t steps, std::int64_t before, StencilStop const& stop,
                               std::string const& why);
/// numbers: of every rank; why: of this one
/// Errors  usage  on all ranks: one refuses its call, or was asked for something else than rank 0
void check_asked(std::vector<std::vector<double>> const& numbers, std::string const& why);

}  // namespace hostless
