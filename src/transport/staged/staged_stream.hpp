#pragma once

#include <memory>

#include "transport/stream/stream_endpoint.hpp"

namespace hostless::gpu {

/// Through pinned memory and the transport of the host. setup.levels: one, the whole exchange; in place, its
/// parts are at most two, of whole doubles.
std::unique_ptr<StreamEndpoint> make_staged_stream(StreamSetup const& setup);

}  // namespace hostless::gpu
