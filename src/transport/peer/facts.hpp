#pragma once

#include "hostless/transport/gpu_transport.hpp"

namespace hostless::gpu {

inline constexpr GpuTransportFacts peer_facts = {GpuTransport::peer, "peer",
                                                 GpuTransportFacts::Actor::kernels};

}  // namespace hostless::gpu
