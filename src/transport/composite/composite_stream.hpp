#pragma once
// Two stream endpoints as one: messages inside a node by the one, those between nodes by the other.

#include <memory>

#include "transport/stream/stream_transports.hpp"

namespace hostless::gpu {

/// What `between` asks of the ranks that it connects.
enum class BetweenRanks { may_share_gpus, have_a_gpu_each };

/// setup.node and setup.speaks are there, equal on all ranks. `inside` carries between the ranks of a node, who are
/// numbered anew, `between` between nodes:
/// with Actor::host as all ranks, and sums too (the host's transport has nodes of its own, or has not);
/// else as the ranks that speak, and at least one a node, numbered anew. Sums are then gathered inside each node, go
/// as one message from node to node, and are handed on inside.
/// Errors  as those two have; of `know`: usage  ranks of `between` on one GPU that may not be
std::unique_ptr<StreamEndpoint> make_composite_stream(StreamSetup const& setup, StreamTransport const& inside,
                                                      StreamTransport const& between,
                                                      BetweenRanks ranks = BetweenRanks::may_share_gpus);

}  // namespace hostless::gpu
