#pragma once
// Persistent neighbourhood collectives in the place of MPI's, in one of its widths.
// Whoever includes this says which:
//   HOSTLESS_NAME(x), HOSTLESS_OF_MPI(x)  what MPI calls x, and what it calls its own of it
//   Count, Displacement                   the integers of lists

#include "preload/names_text.hpp"
#include "preload/taken_or.hpp"

extern "C" {

int HOSTLESS_NAME(Neighbor_allgather)(const void* send, Count send_count, MPI_Datatype send_type,
                                      void* receive, Count receive_count, MPI_Datatype receive_type,
                                      MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  report().handed_on(HOSTLESS_SPELT(HOSTLESS_NAME(Neighbor_allgather)), Reason::persistent);
  return HOSTLESS_OF_MPI(Neighbor_allgather)(send, send_count, send_type, receive, receive_count,
                                             receive_type, comm, info, request);
}
int HOSTLESS_NAME(Neighbor_allgatherv)(const void* send, Count send_count, MPI_Datatype send_type,
                                       void* receive, const Count receive_counts[],
                                       const Displacement receive_displacements[], MPI_Datatype receive_type,
                                       MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  report().handed_on(HOSTLESS_SPELT(HOSTLESS_NAME(Neighbor_allgatherv)), Reason::persistent);
  return HOSTLESS_OF_MPI(Neighbor_allgatherv)(send, send_count, send_type, receive, receive_counts,
                                              receive_displacements, receive_type, comm, info, request);
}
int HOSTLESS_NAME(Neighbor_alltoall)(const void* send, Count send_count, MPI_Datatype send_type,
                                     void* receive, Count receive_count, MPI_Datatype receive_type,
                                     MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  report().handed_on(HOSTLESS_SPELT(HOSTLESS_NAME(Neighbor_alltoall)), Reason::persistent);
  return HOSTLESS_OF_MPI(Neighbor_alltoall)(send, send_count, send_type, receive, receive_count, receive_type,
                                            comm, info, request);
}
int HOSTLESS_NAME(Neighbor_alltoallv)(const void* send, const Count send_counts[],
                                      const Displacement send_displacements[], MPI_Datatype send_type,
                                      void* receive, const Count receive_counts[],
                                      const Displacement receive_displacements[], MPI_Datatype receive_type,
                                      MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  report().handed_on(HOSTLESS_SPELT(HOSTLESS_NAME(Neighbor_alltoallv)), Reason::persistent);
  return HOSTLESS_OF_MPI(Neighbor_alltoallv)(send, send_counts, send_displacements, send_type, receive,
                                             receive_counts, receive_displacements, receive_type, comm, info,
                                             request);
}
int HOSTLESS_NAME(Neighbor_alltoallw)(const void* send, const Count send_counts[],
                                      const MPI_Aint send_displacements[], const MPI_Datatype send_types[],
                                      void* receive, const Count receive_counts[],
                                      const MPI_Aint receive_displacements[],
                                      const MPI_Datatype receive_types[], MPI_Comm comm, MPI_Info info,
                                      MPI_Request* request) {
  report().handed_on(HOSTLESS_SPELT(HOSTLESS_NAME(Neighbor_alltoallw)), Reason::persistent);
  return HOSTLESS_OF_MPI(Neighbor_alltoallw)(send, send_counts, send_displacements, send_types, receive,
                                             receive_counts, receive_displacements, receive_types, comm, info,
                                             request);
}
}  // extern "C"
