#pragma once
// What differs between the libraries of MPIS_...: over an MPI, or over threads.

#include "hostless/mpis/stream-triggering.h"
#include "hostless/queue.h"
// Of programs, which are to call ours by MPI's names.
#undef MPI_Init
#undef MPI_Init_thread

namespace hostless::mpis {

/// The transport of a communicator, made when it is asked for the first time: collective then. NULL:
/// hostless_last_error has the text.
hostless_transport* transport_of(MPI_Comm comm);
/// Bytes of an element that has no gaps; 0: another one.
std::size_t packed_bytes(MPI_Datatype datatype);
/// As C has it (hostless_datatype, hostless_reduction); -1: none.
int datatype_of(MPI_Datatype datatype);
int reduction_of(MPI_Op op);
/// Starts MPI with as many threads as it has.
int begin(int* argc, char*** argv, int* provided);

}  // namespace hostless::mpis
