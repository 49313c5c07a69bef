#pragma once

#include <memory>

#include "transport/stream/stream_endpoint.hpp"

namespace hostless::gpu {

/// Kernels on a stream that store into the memory of the other ranks' GPUs, with a signal behind every level.
///
/// Why what is overwritten has been read: buffers are two, in turn, and a signal goes both ways between two
/// ranks that have anything to say to each other. Whoever puts number e + 2 has awaited the other's signal of
/// e + 1, which that one stored behind its last look at e.
///
/// A rank is lost when its signal does not come within the deadline; it then poisons those of the others.
std::unique_ptr<StreamEndpoint> make_peer_stream(StreamSetup const& setup);

}  // namespace hostless::gpu
