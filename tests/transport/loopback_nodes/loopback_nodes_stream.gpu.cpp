// Loopback inside nodes, and loopback between them: what a composite is made of, without a GPU's memory.
#include "facts.hpp"
#include "transport/composite/composite_stream.hpp"

namespace hostless::gpu {

StreamTransport loopback_stream();

namespace {

std::unique_ptr<StreamEndpoint> make_loopback_nodes(StreamSetup const& setup) {
  return make_composite_stream(setup, loopback_stream(), loopback_stream());
}

}  // namespace

StreamTransport loopback_nodes_stream() { return {loopback_nodes_facts, &make_loopback_nodes}; }

}  // namespace hostless::gpu
