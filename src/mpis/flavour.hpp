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
/// Bytes of an element that has no gaps and is sent as it lies; 0: another one, or none.
std::size_t packed_bytes(MPI_Datatype datatype);
/// As C has it (hostless_datatype, hostless_reduction); -1: none.
int datatype_of(MPI_Datatype datatype);
int reduction_of(MPI_Op op);
/// The GPU whose streams do the work of this rank's requests; below 0: none, the host does.
int gpu_of_rank();
/// Of a match that is complete: what MPI_Get_count reads.
void write_bytes(MPI_Status& status, std::size_t bytes);
/// Whether requests can be made: between the start of MPI and its end.
bool is_started();
/// Starts MPI with as many threads as it has.
int begin(int* argc, char*** argv, int* provided);

}  // namespace hostless::mpis
