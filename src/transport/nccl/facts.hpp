#pragma once

#include "hostless/transport/gpu_transport.hpp"

namespace hostless::gpu {

inline constexpr GpuTransportFacts nccl_facts = {GpuTransport::nccl, "nccl",
                                                 GpuTransportFacts::Actor::library, false, true};

}  // namespace hostless::gpu
