#pragma once

#include "hostless/transport/gpu_transport.hpp"

namespace hostless::gpu {

inline constexpr GpuTransportFacts nvshmem_facts = {GpuTransport::nvshmem, "nvshmem",
                                                    GpuTransportFacts::Actor::library, true};

}  // namespace hostless::gpu
