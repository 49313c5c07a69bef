#pragma once
// The stream faces of transports, as a GPU library has them: those of the one list, cmake/Transports.cmake.

#include <memory>
#include <vector>

#include "hostless/transport/gpu_transport.hpp"
#include "transport/stream/stream_endpoint.hpp"

namespace hostless::gpu {

/// A stream face: the function `StreamTransport NAME_stream()` of its folder returns it.
struct StreamTransport {
  GpuTransportFacts facts;
  /// Errors  environment  the vendor's library cannot be loaded
  std::unique_ptr<StreamEndpoint> (*make)(StreamSetup const&) = nullptr;
  TransportFacts (*library)() = nullptr;  ///< of a library of its own
  /// Where its memory is symmetric: as symmetric_offer and symmetric_memory.
  SymmetricOffer (*offer)(StreamSetup const&, std::int64_t window_bytes) = nullptr;
  std::shared_ptr<SymmetricMemory> (*memory)(StreamSetup const&,
                                             std::vector<SymmetricOffer> const&) = nullptr;
};
template <class Endpoint>
std::unique_ptr<StreamEndpoint> make_stream(StreamSetup const& setup) {
  return std::make_unique<Endpoint>(setup);
}
/// Written by cmake/Transports.cmake.
std::vector<StreamTransport> const& stream_transports();

/// Errors  usage        more ranks than kernels know of; it has no stream face
///         environment  the vendor's library cannot be loaded
std::unique_ptr<StreamEndpoint> make_stream_endpoint(GpuTransport transport, StreamSetup const& setup);

/// What is known of a library that is loaded when it is asked for: `version` and `detail` say it, or throw.
TransportFacts library_facts(char const* name, std::string (*version)(), std::string (*detail)() = nullptr);

/// Those that are libraries of their own.
std::vector<TransportFacts> library_transports();
/// The version of one of them, in a few words.
std::string library_of(GpuTransport transport);

/// With symmetric memory, before an endpoint or a window is made: what this rank wants, which is gathered;
/// then all take the memory together. window_bytes: 0: what setup.rounds take; else a window that kernels
/// store into.
/// Errors  usage        it has no such memory; the library has met other ranks in this process
///         environment  the library is absent, or was given up; not in time; no memory
SymmetricOffer symmetric_offer(GpuTransport transport, StreamSetup const& setup, std::int64_t window_bytes);
/// Blocks at most setup.first_s for each of two calls of the library.
std::shared_ptr<SymmetricMemory> symmetric_memory(GpuTransport transport, StreamSetup const& setup,
                                                  std::vector<SymmetricOffer> const& all);

}  // namespace hostless::gpu
