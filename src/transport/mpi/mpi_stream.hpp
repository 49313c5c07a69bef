#pragma once

#include <memory>

#include "transport/stream/stream_endpoint.hpp"

namespace hostless::gpu {

/// Messages of the host between buffers in device memory, by an MPI that takes it.
std::unique_ptr<StreamEndpoint> make_mpi_stream(StreamSetup const& setup);

}  // namespace hostless::gpu
