#pragma once

#include "hostless/plan/node_map.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// Which ranks share a machine: those whose host names are equal. Sockets and devices are not looked for (0
/// and -1). Collective; one all-gather of host names.
NodeMap find_machines(Group& group);
/// Nodes of so many ranks each, one after the other; 0: machines. Collective where it is 0.
NodeMap find_nodes(Group& group, int ranks_per_node);

/// The socket that this thread may run on, or -1 where it may run on several, or nobody says. Local.
/// Errors  environment  hwloc cannot be initialised
int socket_of_thread();

}  // namespace hostless
