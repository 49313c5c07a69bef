#pragma once

#include <memory>

#include "transport/stream/stream_endpoint.hpp"

namespace hostless::gpu {

/// Puts with signals into symmetric memory (setup.symmetric).
/// Errors  environment  the library cannot be loaded
std::unique_ptr<StreamEndpoint> make_nvshmem_stream(StreamSetup const& setup);
TransportFacts nvshmem_facts();

/// As those of stream_transports.hpp.
SymmetricOffer nvshmem_offer(StreamSetup const& setup, std::int64_t window_bytes);
std::shared_ptr<SymmetricMemory> nvshmem_memory(StreamSetup const& setup,
                                                std::vector<SymmetricOffer> const& all);

}  // namespace hostless::gpu
