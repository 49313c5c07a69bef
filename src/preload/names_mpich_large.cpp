// What MPI 4 has beside: all of them with counts of 64 bits.
#include <mpi.h>

#include "preload/taken_or.hpp"

using namespace hostless::preload;
using Count = MPI_Count;
using Displacement = MPI_Aint;
#define HOSTLESS_NAME(name) MPI_##name##_c
#define HOSTLESS_OF_MPI(name) PMPI_##name##_c

// after what it is made with
#include "preload/names.impl.hpp"

#undef HOSTLESS_NAME
#undef HOSTLESS_OF_MPI
#define HOSTLESS_NAME(name) MPI_##name##_init_c
#define HOSTLESS_OF_MPI(name) PMPI_##name##_init_c
#include "preload/names_persistent.impl.hpp"
