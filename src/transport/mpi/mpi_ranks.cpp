// How ranks of each MPI come about.
#include "hostless/base/error.hpp"
#include "hostless/transport/mpi.hpp"
#include "transport/host_transport.hpp"

namespace hostless {
namespace {

template <MpiVendor vendor>
HostTransport transport_of() {
  HostTransport of;
  of.name = name(vendor);
  of.start = [](int ranks, std::vector<std::string> const& command) {
    return run_mpirun(mpirun_command(vendor, ranks, command));
  };
  of.open = [] { return open_mpi_transport(vendor); };
  of.missing = []() -> std::string {
    for (MpiPlugin const& plugin : mpi_plugins())
      if (plugin.vendor == vendor && !plugin.problem.empty()) return plugin.problem;
    try {
      mpirun_command(vendor, 1, {"true"});
    } catch (Error const& e) {
      return e.what();
    }
    return {};
  };
  of.library_name = "mpi";
  of.library = mpi_library_of_this_process;
  of.library_of_others = true;
  of.spins = vendor == MpiVendor::mpich;  // Open MPI yields where there are more ranks than cores
  return of;
}

}  // namespace

HostTransport openmpi_transport() { return transport_of<MpiVendor::openmpi>(); }
HostTransport mpich_transport() { return transport_of<MpiVendor::mpich>(); }

}  // namespace hostless
