// What every MPI has of neighbourhood collectives.
#include <mpi.h>

#include "preload/taken_or.hpp"

using namespace hostless::preload;
using Count = int;
using Displacement = int;
#define HOSTLESS_NAME(name) MPI_##name
#define HOSTLESS_OF_MPI(name) PMPI_##name

// after what it is made with
#include "preload/names.impl.hpp"

extern "C" int MPI_Finalize(void) {
  write_report();
  forget_communicators();
  return PMPI_Finalize();
}
