// Persistent collectives, as Open MPI has had them before MPI 4.
#include <mpi.h>

// after it
#include <mpi-ext.h>

#include "preload/taken_or.hpp"

using namespace hostless::preload;
using Count = int;
using Displacement = int;
#define HOSTLESS_NAME(name) MPIX_##name##_init
#define HOSTLESS_OF_MPI(name) PMPIX_##name##_init

// after what it is made with
#include "preload/names_persistent.impl.hpp"
