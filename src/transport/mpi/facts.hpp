#pragma once

#include "hostless/transport/gpu_transport.hpp"

namespace hostless::gpu {

inline constexpr GpuTransportFacts mpi_facts = {
    GpuTransport::mpi, "mpi", GpuTransportFacts::Actor::host, false, false, "mpi"};

}  // namespace hostless::gpu
