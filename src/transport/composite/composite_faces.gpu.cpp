// Peer memory inside a node, and each of three between nodes.
#include "transport/composite/composite_stream.hpp"
#include "transport/composite/facts.hpp"

namespace hostless::gpu {

StreamTransport peer_stream();
StreamTransport nccl_stream();
StreamTransport mpi_stream();

namespace {

StreamSetup part_of(GpuTransportFacts const& composite, StreamSetup setup) {
  setup.composite = composite.name;
  return setup;
}
std::unique_ptr<StreamEndpoint> make_peer_nccl(StreamSetup const& setup) {
  return make_composite_stream(part_of(peer_nccl_facts, setup), peer_stream(), nccl_stream(),
                               BetweenRanks::have_a_gpu_each);
}
std::unique_ptr<StreamEndpoint> make_peer_mpi(StreamSetup const& setup) {
  return make_composite_stream(part_of(peer_mpi_facts, setup), peer_stream(), mpi_stream());
}
std::unique_ptr<StreamEndpoint> make_peer_host(StreamSetup const& setup) {
  StreamSetup pinned = part_of(peer_host_facts, setup);
  pinned.in_pinned_memory = true;
  return make_composite_stream(pinned, peer_stream(), mpi_stream());
}

}  // namespace

StreamTransport peer_nccl_stream() { return {peer_nccl_facts, &make_peer_nccl}; }
StreamTransport peer_mpi_stream() { return {peer_mpi_facts, &make_peer_mpi}; }
StreamTransport peer_host_stream() { return {peer_host_facts, &make_peer_host}; }

}  // namespace hostless::gpu
