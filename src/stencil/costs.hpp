#pragma once

#include "hostless/stencil/stencil.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless {

/// What the depth of halos is chosen by, in seconds; measured in some milliseconds, the same on all ranks.
struct StencilCosts {
  double cell = 0;      ///< of one step of one cell that lies in the cache
  double exchange = 0;  ///< of one exchange of the halos of one step, whoever waits for whom
};
/// Both 0 where nothing is exchanged. Collective. Errors  as HaloExchange; peer_lost
StencilCosts measure_costs(Transport& transport, BoxPartition const& partition, StencilKernel const& kernel,
                           StencilOptions const& options);

}  // namespace hostless
