#pragma once

#include "hostless/transport/gpu_transport.hpp"

namespace hostless::gpu {

inline constexpr GpuTransportFacts loopback_facts = {
    GpuTransport{128}, "loopback", GpuTransportFacts::Actor::library, false, false, "loopback"};

}  // namespace hostless::gpu
