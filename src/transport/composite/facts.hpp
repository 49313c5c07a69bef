#pragma once
// Peer memory inside a node, and between nodes what the second word says.

#include "hostless/transport/gpu_transport.hpp"

namespace hostless::gpu {

inline constexpr GpuTransportFacts peer_nccl_facts = {
    GpuTransport::peer_nccl, "peer+nccl", GpuTransportFacts::Actor::library, false, true, nullptr, true};
inline constexpr GpuTransportFacts peer_mpi_facts = {
    GpuTransport::peer_mpi, "peer+mpi", GpuTransportFacts::Actor::host, false, false, "mpi", true};
inline constexpr GpuTransportFacts peer_host_facts = {
    GpuTransport::peer_host, "peer+host", GpuTransportFacts::Actor::host, false, false, nullptr, true};

}  // namespace hostless::gpu
