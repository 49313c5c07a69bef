#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "hostless/plan/boxes.hpp"
#include "hostless/stencil/kernel.hpp"
#include "hostless/stencil/stencil.hpp"
#include "stencil/costs.hpp"

namespace hostless {

/// How many steps go between two exchanges and into one pass.
struct StepsChosen {
  int depth = 1, block_steps = 1;
  bool shares = false;  ///< of `slabs_side_by_side`
};
/// Steps that halos may be deep, by the thinnest box of axes that have any; 0: not even one.
int deepest_halo(BoxPartition const& partition, StencilKernel const& kernel);

/// Where the caller left it open: blocked where a box is larger than the cache, and as deep as costs the
/// least a step. An exchange costs the same whatever its depth, nearly; the cells of the halo that are
/// stepped twice grow with it. The same on all ranks that pass equal arguments.
///
/// cache_bytes  what a box of so many has gains nothing by blocking
/// Errors  usage  what the caller asked for does not fit
StepsChosen choose_steps(BoxPartition const& partition, StencilKernel const& kernel,
                         StencilOptions const& options, StencilCosts const& costs, std::int64_t cache_bytes);

/// Seconds of a step with halos of so many, and of one in slabs that share their cells, which wait and read each other's
/// for `sharing` seconds.
double step_with_halos(BoxPartition const& partition, StencilKernel const& kernel, StencilCosts const& costs,
                       int depth);
double step_with_sharing(BoxPartition const& slabs, StencilKernel const& kernel, StencilCosts const& costs,
                         double sharing);

/// Slabs along the first axis in which ranks of one memory step arrays that all of them share, one step at a time:
/// what a rank reads of others lies where they have written it. None where they cannot be
/// (StencilOptions::share), and, unless always, where a slab has few cells, is thin, or gains by blocking (cache_bytes as
/// above).
std::optional<BoxPartition> slabs_side_by_side(Grid const& grid, StencilKernel const& kernel,
                                               StencilOptions const& options, int ranks,
                                               std::int64_t cache_bytes);

/// How many of `most` threads are worth it as ranks for so many steps of a grid where the caller left it open:
/// each has cells that take longer than its share in exchanges, and altogether more to do than starting it takes.
/// None whose halo of `depth` steps (0: of one) would not fit.
///
/// handshake_s  as measure_handshake
int ranks_worth(Grid const& grid, StencilKernel const& kernel, int depth, std::int64_t steps, int most,
                double handshake_s);

/// Periodic axes that are not cut and whose ends need no exchange: a rank copies a radius of cells from one end
/// beyond the other before each step, in shared arrays that which steps it. A pass of several steps cannot, and has
/// halos as deep there too.
std::array<bool, 3> wrapped_axes(BoxPartition const& partition, StencilKernel const& kernel,
                                 StepsChosen const& chosen);

/// Steps of the next pass where `left` are to be taken, of which the last one's change is looked at or not: at
/// most block_steps, and that one alone.
int next_pass(std::int64_t left, int block_steps, bool looks);

}  // namespace hostless
