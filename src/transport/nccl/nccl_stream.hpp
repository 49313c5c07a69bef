#pragma once

#include <memory>

#include "transport/stream/stream_endpoint.hpp"

namespace hostless::gpu {

/// Sends and receives of the vendor's library of collectives.
/// Errors  environment  it cannot be loaded
std::unique_ptr<StreamEndpoint> make_nccl_stream(StreamSetup const& setup);
TransportFacts nccl_facts();

}  // namespace hostless::gpu
