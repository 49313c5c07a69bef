// The composite transport without MPI: ranks 0 and 1 are a node, 2 and 3 are one, and so on.
#include "hostless/transport/composite.hpp"
#include "hostless/transport/launcher.hpp"
#include "transport/host_transport.hpp"

namespace hostless {

HostTransport processes_transport();

HostTransport nodes_transport() {
  HostTransport of = processes_transport();
  of.name = "nodes";
  of.open = [] {
    auto between = open_processes_transport();
    int const node = between->group().rank() / 2;
    return open_composite_transport(std::move(between), node);
  };
  return of;
}

}  // namespace hostless
