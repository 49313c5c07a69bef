#pragma once

#include "hostless/transport/gpu_transport.hpp"

namespace hostless::gpu {

inline constexpr GpuTransportFacts host_facts = {GpuTransport::host, "host", GpuTransportFacts::Actor::host};

}  // namespace hostless::gpu
