#pragma once

#include "hostless/plan/node_map.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// Which ranks share a machine: those whose host names are equal. Sockets and devices are not looked for (0
/// and -1). Collective; one all-gather of host names.
NodeMap find_machines(Group& group);

}  // namespace hostless
