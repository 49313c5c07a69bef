#pragma once

#include <memory>

#include "hostless/transport/transport.hpp"

namespace hostless {

/// The node of this rank, a number that ranks of one node have in common: the lowest rank with the same host
/// name; or, where HOSTLESS_COMPOSITE_RANKS_PER_NODE is k, rank / k, to try several nodes on one machine.
/// Collective; one all-gather of host names.
int node_of_this_rank(Group& group);

/// Carries each message by its reach: ranks of one node exchange through memory that they share, ranks of
/// different nodes through `between`. A gather goes through the memory of each node first, then as one
/// message for each ordered pair of nodes, which holds what each rank of the source contributed; so what
/// arrives, and every sum, has the bits that one transport alone gives. All else (set-up, all-reduces, queues)
/// is that of `between`.
///
/// node: of this rank; ranks with equal numbers are on one node.
/// Collective over between's group. Cost: a socket between each two ranks of a node, once; for each bind one
/// of either transport.
/// Errors  usage        ranks of `between` are threads, or a node has ranks on two machines;
///         environment  ranks of a node do not see one folder for temporary files, or no socket can be made;
///         peer_lost    a rank did not arrive before the deadline
std::unique_ptr<Transport> open_composite_transport(std::unique_ptr<Transport> between, int node);
/// With node_of_this_rank.
std::unique_ptr<Transport> open_composite_transport(std::unique_ptr<Transport> between);

}  // namespace hostless
