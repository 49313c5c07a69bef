#include "transport/stream/stream_transports.hpp"

#include "transport/mpi/mpi_stream.hpp"
#include "transport/nccl/nccl_stream.hpp"
#include "transport/nvshmem/nvshmem_stream.hpp"
#include "transport/peer/peer_stream.hpp"
#include "transport/staged/staged_stream.hpp"
#include "transport/stream/limits.hpp"

namespace hostless::gpu {
namespace {

struct StreamTransport {
  GpuTransport transport;
  std::unique_ptr<StreamEndpoint> (*make)(StreamSetup const&);
  TransportFacts (*facts)() = nullptr;  ///< of a library of its own
  SymmetricOffer (*offer)(StreamSetup const&, std::int64_t window_bytes) = nullptr;
  std::shared_ptr<SymmetricMemory> (*memory)(StreamSetup const&,
                                             std::vector<SymmetricOffer> const&) = nullptr;
};
constexpr StreamTransport stream_transports[] = {
    {GpuTransport::peer, &make_peer_stream},
    {GpuTransport::nccl, &make_nccl_stream, &nccl_facts},
    {GpuTransport::nvshmem, &make_nvshmem_stream, &nvshmem_facts, &nvshmem_offer, &nvshmem_memory},
    {GpuTransport::mpi, &make_mpi_stream},
    {GpuTransport::host, &make_staged_stream},
};

StreamTransport const& row_of(GpuTransport transport, char const* wanted) {
  for (StreamTransport const& one : stream_transports)
    if (one.transport == transport) return one;
  throw Error(ErrorCode::usage, std::string("GPU transport ") + name(transport) + " " + wanted +
                                    " (it has none). Use another GPU transport.");
}

}  // namespace

std::unique_ptr<StreamEndpoint> make_stream_endpoint(GpuTransport transport, StreamSetup const& setup) {
  if (setup.ranks > most_ranks)
    throw Error(ErrorCode::usage, std::to_string(setup.ranks) +
                                      " ranks on GPUs (kernels add the sums of at most " +
                                      std::to_string(most_ranks) + "). Use fewer ranks.");
  return row_of(transport, "with a stream face").make(setup);
}

std::string library_of(GpuTransport transport) {
  StreamTransport const& row = row_of(transport, "with a library");
  return row.facts == nullptr ? std::string() : row.facts().library;
}

namespace {

StreamTransport const& with_memory(GpuTransport transport) {
  StreamTransport const& row = row_of(transport, "with symmetric memory");
  if (row.offer == nullptr)
    throw Error(ErrorCode::usage, std::string("GPU transport ") + name(transport) +
                                      " with symmetric memory (it has none). Use another GPU transport.");
  return row;
}

}  // namespace

SymmetricOffer symmetric_offer(GpuTransport transport, StreamSetup const& setup, std::int64_t window_bytes) {
  return with_memory(transport).offer(setup, window_bytes);
}

std::shared_ptr<SymmetricMemory> symmetric_memory(GpuTransport transport, StreamSetup const& setup,
                                                  std::vector<SymmetricOffer> const& all) {
  return with_memory(transport).memory(setup, all);
}

std::vector<TransportFacts> library_transports() {
  std::vector<TransportFacts> all;
  for (StreamTransport const& one : stream_transports)
    if (one.facts != nullptr) all.push_back(one.facts());
  return all;
}

}  // namespace hostless::gpu
