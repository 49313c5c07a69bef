#include "hostless/transport/gpu_transport.hpp"

#include <cstring>
#include <vector>

#include "base/nearest.hpp"
#include "hostless/base/error.hpp"
#include "transport/host_transport.hpp"
#include "transport/mpi/mpi_device_memory.hpp"

namespace hostless {
namespace {

std::vector<GpuTransportFacts>& known_gpu_transports() {
  static std::vector<GpuTransportFacts> all = gpu_host_transports();
  return all;
}

}  // namespace

std::vector<GpuTransportFacts> const& gpu_transports() { return known_gpu_transports(); }

void add_gpu_transports(std::vector<GpuTransportFacts> const& more) {
  auto& all = known_gpu_transports();
  all.insert(all.end(), more.begin(), more.end());
}

GpuTransport gpu_transport_from(char const* text) {
  std::vector<std::string> words{"auto"};
  for (GpuTransportFacts const& facts : gpu_transports()) {
    if (std::strcmp(text, facts.name) == 0) return facts.transport;
    words.emplace_back(facts.name);
  }
  if (words[0] == text) return GpuTransport::automatic;
  std::string list = words[0];
  for (std::size_t k = 1; k < words.size(); ++k) list += (k + 1 < words.size() ? ", " : " or ") + words[k];
  throw Error(ErrorCode::usage, std::string("unknown GPU transport '") + text +
                                    "' (it decides what carries numbers between GPUs)." +
                                    did_you_mean(text, words) + " Use " + list + ".");
}

std::string takes_device_memory(GpuTransport transport, std::string const& vendor) {
  if (transport == GpuTransport::mpi || transport == GpuTransport::peer_mpi)
    return require_mpi_device_memory(vendor);
  throw Error(ErrorCode::usage,
              std::string("GPU transport ") + name(transport) +
                  " for messages between memory of GPUs by the host (it has none). Use mpi.");
}

void check_gpu_transport(GpuTransport transport, Capabilities const& of_ranks, int ranks, int ranks_here) {
  GpuTransportFacts const& facts = facts_of(transport);
  std::string const what = std::string("GPU transport ") + facts.name + " with ";
  if (facts.symmetric_memory && of_ranks.threads_as_ranks && ranks > 1)
    throw Error(ErrorCode::usage,
                what + std::to_string(ranks) +
                    " ranks that are threads of one process (NVSHMEM knows a process a GPU). "
                    "Use --transport processes, or start them with mpirun.");
  if (facts.needs_transport != nullptr && of_ranks.transport != facts.needs_transport)
    throw Error(ErrorCode::usage, what + "ranks of transport " + of_ranks.transport +
                                      " (it is their own messages that carry). Use --transport " +
                                      facts.needs_transport + ", or --gpu-transport " +
                                      (facts.by_nodes ? "peer+host." : "host."));
  if (facts.actor == GpuTransportFacts::Actor::kernels && ranks > ranks_here)
    throw Error(ErrorCode::usage, what + std::to_string(ranks_here) + " of " + std::to_string(ranks) +
                                      " ranks on this machine (GPUs store into the memory of their machine "
                                      "alone). Use --gpu-transport nccl or host.");
}

}  // namespace hostless
