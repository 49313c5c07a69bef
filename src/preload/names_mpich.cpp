// What MPI 4 has beside: persistent collectives.
#include <mpi.h>

#include "preload/taken_or.hpp"

using namespace hostless::preload;
using Count = int;
using Displacement = int;
#define HOSTLESS_NAME(name) MPI_##name##_init
#define HOSTLESS_OF_MPI(name) PMPI_##name##_init

// after what it is made with
#include "preload/names_persistent.impl.hpp"
