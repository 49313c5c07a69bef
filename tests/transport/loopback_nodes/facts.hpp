#pragma once

#include "hostless/transport/gpu_transport.hpp"

namespace hostless::gpu {

inline constexpr GpuTransportFacts loopback_nodes_facts = {GpuTransport{129},
                                                           "loopback+loopback",
                                                           GpuTransportFacts::Actor::library,
                                                           false,
                                                           false,
                                                           "loopback",
                                                           true};

}  // namespace hostless::gpu
