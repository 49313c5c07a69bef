#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hostless/base/error.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless {

/// What carries halos and sums between the GPUs of several ranks. None of them changes a bit of a result.
enum class GpuTransport : std::uint8_t {
  automatic,  ///< "auto": peer
  peer,       ///< GPUs store into each other's memory
  nccl,       ///< the vendor's library (NCCL, RCCL), a GPU a rank: in the runs `graph` and `stream`
  nvshmem,    ///< NVSHMEM, a process and a GPU a rank: puts with signals in the runs `graph` and `stream`,
              ///< stores into its memory in the run `persistent`, inside a node
  mpi,        ///< MPI that takes device memory, ranks of the transport `mpi`: in the run `stream`, and in
              ///< `graph` where each rank has a GPU
  host,       ///< pinned memory of the host and the matrix' transport: as mpi
  peer_nccl,  ///< "peer+nccl": inside a node (of the plan) peer, between nodes nccl, for which the ranks of a node
              ///< with messages to other nodes have a GPU each: in the runs `graph` and `stream`
  peer_mpi,  ///< "peer+mpi": between nodes mpi: as mpi
  peer_host  ///< "peer+host": between nodes host: as host
             ///< 128 and above: those of tests, which no product has
};
/// What those who use a transport must know of it.
struct GpuTransportFacts {
  GpuTransport transport;
  char const* name;
  /// Who carries: kernels themselves (they store), a library that queues it on a stream, or the host program.
  enum class Actor : std::uint8_t { kernels, library, host } actor = Actor::kernels;
  /// Its memory is taken by all ranks together before anything is bound, each a process; kernels may store
  /// into it.
  bool symmetric_memory = false;
  /// Ranks stay connected, so they may have met before.
  bool stays_connected = false;
  /// The transport that ranks must have; nullptr: any. With Actor::host its messages go between buffers of
  /// GPUs, with nullptr through pinned memory.
  char const* needs_transport = nullptr;
  /// Inside a node of the plan by peer memory, between nodes by something else.
  bool by_nodes = false;
};

/// All of them, without `automatic`, in the order of the one list of transports (cmake/Transports.cmake).
std::vector<GpuTransportFacts> const& gpu_transports();
/// `automatic` is answered as what it comes to, peer.
inline GpuTransportFacts const& facts_of(GpuTransport transport) {
  GpuTransport const wanted = transport == GpuTransport::automatic ? GpuTransport::peer : transport;
  for (GpuTransportFacts const& facts : gpu_transports())
    if (facts.transport == wanted) return facts;
  throw Error(ErrorCode::usage, "GPU transport number " + std::to_string(static_cast<int>(wanted)) +
                                    " (none has it). Use one of gpu_transports().");
}

inline char const* name(GpuTransport transport) {
  return transport == GpuTransport::automatic ? "auto" : facts_of(transport).name;
}
/// Errors  usage  unknown name
GpuTransport gpu_transport_from(char const* text);

/// Who says that the transport of the ranks takes memory of a vendor's GPUs ("cuda", "hip").
/// Errors  environment  nobody does
std::string takes_device_memory(GpuTransport transport, std::string const& vendor);

/// Whether ranks of a transport of the host can have it between their GPUs.
/// ranks_here: those on this machine.
/// Errors  usage  it knows processes and they are threads; another transport's messages are to carry; ranks
/// of
///                several machines that are to store into each other's memory
void check_gpu_transport(GpuTransport transport, Capabilities const& of_ranks, int ranks, int ranks_here);

}  // namespace hostless
