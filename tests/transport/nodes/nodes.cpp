// The composite transport without MPI: ranks 0 and 1 are a node, 2 and 3 are one, and so on.
#include "hostless/transport/composite.hpp"
#include "hostless/transport/launcher.hpp"
#include "transport/host_transport.hpp"

namespace hostless {

HostTransport nodes_transport() {
  HostTransport of;
  of.name = "nodes";
  of.capabilities = processes_capabilities();
  of.start = [](int ranks, std::vector<std::string> const& command) {
    Launch job;
    job.ranks = ranks;
    job.command = command;
    return launch(job);
  };
  of.open = [] {
    auto between = open_processes_transport();
    int const node = between->group().rank() / 2;
    return open_composite_transport(std::move(between), node);
  };
  return of;
}

}  // namespace hostless
