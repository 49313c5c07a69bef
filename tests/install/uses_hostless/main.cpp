// Touches one function that lives in an archive of each of several layers, so that a layer missing from the
// package is a link error.
#include <atomic>
#include <cstdio>
#include <hostless/base/isa.hpp>
#include <hostless/machine/topology.hpp>
#include <hostless/transport/mpi.hpp>
#include <hostless/transport/transport.hpp>

int main() {
  std::atomic<int> sum{0};
  hostless::run_on_threads(3, [&](hostless::Group& group) {
    int const total = group.sum(group.rank() + 1);
    if (group.rank() == 0) sum = total;
  });
  hostless::Topology const machine = hostless::find_topology();
  std::printf("%s on %d cores, sum %d\n", hostless::name(hostless::active_isa()), machine.cores, sum.load());
  for (hostless::MpiPlugin const& plugin : hostless::mpi_plugins()) std::printf("%s\n", plugin.path.c_str());
  return sum == 6 && machine.cores > 0 ? 0 : 1;
}
