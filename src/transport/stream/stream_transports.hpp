#pragma once
// The one list of what carries between GPUs on streams. Whoever adds one writes its folder and a line of
// stream_transports.gpu.cpp (and its facts: hostless/transport/gpu_transport.hpp).

#include <memory>
#include <vector>

#include "hostless/transport/gpu_transport.hpp"
#include "transport/stream/stream_endpoint.hpp"

namespace hostless::gpu {

/// Errors  usage        more ranks than kernels know of; it has no stream face
///         environment  the vendor's library cannot be loaded
std::unique_ptr<StreamEndpoint> make_stream_endpoint(GpuTransport transport, StreamSetup const& setup);

/// Those that are libraries of their own.
std::vector<TransportFacts> library_transports();
/// The version of one of them, in a few words.
std::string library_of(GpuTransport transport);

/// With symmetric memory, before an endpoint or a window is made: what this rank wants, which is gathered;
/// then all take the memory together. window_bytes: 0: what setup.levels take; else a window that kernels
/// store into.
/// Errors  usage        it has no such memory; the library has met other ranks in this process
///         environment  the library is absent, or was given up; not in time; no memory
SymmetricOffer symmetric_offer(GpuTransport transport, StreamSetup const& setup, std::int64_t window_bytes);
/// Blocks at most setup.first_s for each of two calls of the library.
std::shared_ptr<SymmetricMemory> symmetric_memory(GpuTransport transport, StreamSetup const& setup,
                                                  std::vector<SymmetricOffer> const& all);

}  // namespace hostless::gpu
