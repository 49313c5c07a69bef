// How ranks of several nodes come about: MPI starts them.
#include "hostless/base/error.hpp"
#include "hostless/transport/composite.hpp"
#include "hostless/transport/mpi.hpp"
#include "transport/host_transport.hpp"

namespace hostless {

HostTransport composite_transport() {
  HostTransport of;
  of.name = "composite";
  Capabilities can;
  can.transport = of.name;
  can.host = can.gather = can.all_reduce = can.host_callback = Support::native;
  can.graph = can.kernel = Support::adapted;
  can.processes_as_ranks = can.bounded_waits = can.late_access = true;
  can.note = "ranks of a node share memory, MPI carries between nodes";
  of.capabilities = can;
  of.start = [](int ranks, std::vector<std::string> const& command) {
    return run_mpirun(mpirun_command(usable_mpi_vendor(), ranks, command));
  };
  of.open = [] { return open_composite_transport(open_mpi_transport(require_mpi_vendor())); };
  of.missing = []() -> std::string {
    try {
      mpirun_command(usable_mpi_vendor(), 1, {"true"});
    } catch (Error const& e) {
      return e.what();
    }
    return {};
  };
  of.library_name = "mpi";
  of.library = mpi_library_of_this_process;
  of.library_of_others = true;
  return of;
}

}  // namespace hostless
