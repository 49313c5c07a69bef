#pragma once
// Neighbourhood collectives in the place of MPI's, in one of its widths.
// Whoever includes this says which:
//   HOSTLESS_NAME(x), HOSTLESS_OF_MPI(x)  what MPI calls x, and what it calls its own of it
//   Count, Displacement                   the integers of lists

#include "preload/names_text.hpp"
#include "preload/taken_or.hpp"

extern "C" {

int HOSTLESS_NAME(Neighbor_allgather)(const void* send, Count send_count, MPI_Datatype send_type,
                                      void* receive, Count receive_count, MPI_Datatype receive_type,
                                      MPI_Comm comm) {
  return taken_or(
      {HOSTLESS_SPELT(HOSTLESS_NAME(Neighbor_allgather)), Operation::allgather,
       equal_side(send, send_count, send_type), equal_side(receive, receive_count, receive_type), comm},
      [&] {
        return HOSTLESS_OF_MPI(Neighbor_allgather)(send, send_count, send_type, receive, receive_count,
                                                   receive_type, comm);
      });
}
int HOSTLESS_NAME(Neighbor_allgatherv)(const void* send, Count send_count, MPI_Datatype send_type,
                                       void* receive, const Count receive_counts[],
                                       const Displacement receive_displacements[], MPI_Datatype receive_type,
                                       MPI_Comm comm) {
  return taken_or(
      {HOSTLESS_SPELT(HOSTLESS_NAME(Neighbor_allgatherv)), Operation::allgatherv,
       equal_side(send, send_count, send_type),
       listed_side(receive, list_of(receive_counts), list_of(receive_displacements), receive_type), comm},
      [&] {
        return HOSTLESS_OF_MPI(Neighbor_allgatherv)(send, send_count, send_type, receive, receive_counts,
                                                    receive_displacements, receive_type, comm);
      });
}
int HOSTLESS_NAME(Neighbor_alltoall)(const void* send, Count send_count, MPI_Datatype send_type,
                                     void* receive, Count receive_count, MPI_Datatype receive_type,
                                     MPI_Comm comm) {
  return taken_or(
      {HOSTLESS_SPELT(HOSTLESS_NAME(Neighbor_alltoall)), Operation::alltoall,
       equal_side(send, send_count, send_type), equal_side(receive, receive_count, receive_type), comm},
      [&] {
        return HOSTLESS_OF_MPI(Neighbor_alltoall)(send, send_count, send_type, receive, receive_count,
                                                  receive_type, comm);
      });
}
int HOSTLESS_NAME(Neighbor_alltoallv)(const void* send, const Count send_counts[],
                                      const Displacement send_displacements[], MPI_Datatype send_type,
                                      void* receive, const Count receive_counts[],
                                      const Displacement receive_displacements[], MPI_Datatype receive_type,
                                      MPI_Comm comm) {
  return taken_or(
      {HOSTLESS_SPELT(HOSTLESS_NAME(Neighbor_alltoallv)), Operation::alltoallv,
       listed_side(send, list_of(send_counts), list_of(send_displacements), send_type),
       listed_side(receive, list_of(receive_counts), list_of(receive_displacements), receive_type), comm},
      [&] {
        return HOSTLESS_OF_MPI(Neighbor_alltoallv)(send, send_counts, send_displacements, send_type, receive,
                                                   receive_counts, receive_displacements, receive_type, comm);
      });
}

int HOSTLESS_NAME(Neighbor_alltoallw)(const void* send, const Count send_counts[],
                                      const MPI_Aint send_displacements[], const MPI_Datatype send_types[],
                                      void* receive, const Count receive_counts[],
                                      const MPI_Aint receive_displacements[],
                                      const MPI_Datatype receive_types[], MPI_Comm comm) {
  report().handed_on(HOSTLESS_SPELT(HOSTLESS_NAME(Neighbor_alltoallw)), Reason::form);
  return HOSTLESS_OF_MPI(Neighbor_alltoallw)(send, send_counts, send_displacements, send_types, receive,
                                             receive_counts, receive_displacements, receive_types, comm);
}
int HOSTLESS_NAME(Ineighbor_allgather)(const void* send, Count send_count, MPI_Datatype send_type,
                                       void* receive, Count receive_count, MPI_Datatype receive_type,
                                       MPI_Comm comm, MPI_Request* request) {
  report().handed_on(HOSTLESS_SPELT(HOSTLESS_NAME(Ineighbor_allgather)), Reason::nonblocking);
  return HOSTLESS_OF_MPI(Ineighbor_allgather)(send, send_count, send_type, receive, receive_count,
                                              receive_type, comm, request);
}
int HOSTLESS_NAME(Ineighbor_allgatherv)(const void* send, Count send_count, MPI_Datatype send_type,
                                        void* receive, const Count receive_counts[],
                                        const Displacement receive_displacements[], MPI_Datatype receive_type,
                                        MPI_Comm comm, MPI_Request* request) {
  report().handed_on(HOSTLESS_SPELT(HOSTLESS_NAME(Ineighbor_allgatherv)), Reason::nonblocking);
  return HOSTLESS_OF_MPI(Ineighbor_allgatherv)(send, send_count, send_type, receive, receive_counts,
                                               receive_displacements, receive_type, comm, request);
}
int HOSTLESS_NAME(Ineighbor_alltoall)(const void* send, Count send_count, MPI_Datatype send_type,
                                      void* receive, Count receive_count, MPI_Datatype receive_type,
                                      MPI_Comm comm, MPI_Request* request) {
  report().handed_on(HOSTLESS_SPELT(HOSTLESS_NAME(Ineighbor_alltoall)), Reason::nonblocking);
  return HOSTLESS_OF_MPI(Ineighbor_alltoall)(send, send_count, send_type, receive, receive_count,
                                             receive_type, comm, request);
}
int HOSTLESS_NAME(Ineighbor_alltoallv)(const void* send, const Count send_counts[],
                                       const Displacement send_displacements[], MPI_Datatype send_type,
                                       void* receive, const Count receive_counts[],
                                       const Displacement receive_displacements[], MPI_Datatype receive_type,
                                       MPI_Comm comm, MPI_Request* request) {
  report().handed_on(HOSTLESS_SPELT(HOSTLESS_NAME(Ineighbor_alltoallv)), Reason::nonblocking);
  return HOSTLESS_OF_MPI(Ineighbor_alltoallv)(send, send_counts, send_displacements, send_type, receive,
                                              receive_counts, receive_displacements, receive_type, comm,
                                              request);
}
int HOSTLESS_NAME(Ineighbor_alltoallw)(const void* send, const Count send_counts[],
                                       const MPI_Aint send_displacements[], const MPI_Datatype send_types[],
                                       void* receive, const Count receive_counts[],
                                       const MPI_Aint receive_displacements[],
                                       const MPI_Datatype receive_types[], MPI_Comm comm,
                                       MPI_Request* request) {
  report().handed_on(HOSTLESS_SPELT(HOSTLESS_NAME(Ineighbor_alltoallw)), Reason::nonblocking);
  return HOSTLESS_OF_MPI(Ineighbor_alltoallw)(send, send_counts, send_displacements, send_types, receive,
                                              receive_counts, receive_displacements, receive_types, comm,
                                              request);
}
}  // extern "C"
