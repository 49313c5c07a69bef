#include "preload/own_transport.hpp"

#include "transport/binding.hpp"

namespace hostless::preload {
namespace {

std::shared_ptr<mpi::World> world_over(MPI_Comm comm) {
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  MPI_Group ranks = MPI_GROUP_NULL;
  MPI_Comm plain = MPI_COMM_NULL;
  PMPI_Comm_group(comm, &ranks);
  MPI_Errhandler programs = MPI_ERRHANDLER_NULL;  // a communicator less is no failure of the program's
  PMPI_Comm_get_errhandler(comm, &programs);
  PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int const code = PMPI_Comm_create(comm, ranks, &plain);
  PMPI_Comm_set_errhandler(comm, programs);
  PMPI_Errhandler_free(&programs);
  PMPI_Group_free(&ranks);
  if (code != MPI_SUCCESS || plain == MPI_COMM_NULL)
    throw Error(ErrorCode::environment,
                "MPI_Comm_create failed (messages need a communicator of their own). Free communicators.");
  PMPI_Comm_set_errhandler(plain, MPI_ERRORS_RETURN);
  std::shared_ptr<mpi::World> made;
  try {
    made = std::make_shared<mpi::World>(plain, level);
  } catch (...) {
    PMPI_Comm_free(&plain);
    throw;
  }
  PMPI_Comm_free(&plain);
  return made;
}

}  // namespace

OwnTransport::OwnTransport(MPI_Comm comm) : world_(world_over(comm)), group_(mpi::make_group(world_)) {}

OwnTransport::~OwnTransport() {
  if (world_->usable()) world_->free_communicators();
}

Capabilities OwnTransport::capabilities() const {
  Capabilities can;
  can.transport = "mpi";
  can.host = Support::native;
  can.processes_as_ranks = can.bounded_waits = can.late_access = true;
  return can;
}

std::unique_ptr<Endpoint> OwnTransport::bind(Binding const& binding) {
  check_binding(*group_, binding);
  return mpi::make_endpoint(world_, *group_, binding);
}

}  // namespace hostless::preload
