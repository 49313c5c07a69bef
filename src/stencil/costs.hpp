#pragma once

#include "hostless/stencil/stencil.hpp"
#include "hostless/transport/transport.hpp"
#include "stencil/shared_cells.hpp"

namespace hostless {

/// What the depth of halos is chosen by, in seconds; measured in some milliseconds, the same on all ranks.
struct StencilCosts {
  double cell = 0;      ///< of one step of one cell that lies in the cache
  double exchange = 0;  ///< of one exchange of the halos of one step, whoever waits for whom
};
/// Both 0 where nothing is exchanged. Collective. Errors  as HaloExchange; peer_lost
StencilCosts measure_costs(Transport& transport, BoxPartition const& partition, StencilKernel const& kernel,
                           StencilOptions const& options);

/// Seconds that two threads need to tell each other where they are, where both have a core; measured once, in a
/// millisecond. It is four times as long where their cores have no cache in common.
double measure_handshake();

/// Seconds of a step that a slab of shared cells takes beside stepping: to wait for its neighbours, read the planes that
/// they wrote, and write its own that they read. Much where cores have no cache in common. The same on all ranks;
/// collective, before any cell is given. Errors  peer_lost
double measure_sharing(Transport& transport, SharedCells& shared, Box const& slab, std::int64_t radius,
                       bool wraps, Exchange& exchange);

}  // namespace hostless
