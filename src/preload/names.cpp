// What every MPI has of neighbourhood collectives, in the place of MPI's.
#include <mpi.h>

#include "preload/taken_or.hpp"

using namespace hostless::preload;

extern "C" {

int MPI_Neighbor_allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                           int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  return taken_or({"MPI_Neighbor_allgather", Operation::allgather, equal_side(send, send_count, send_type),
                   equal_side(receive, receive_count, receive_type), comm},
                  [&] {
                    return PMPI_Neighbor_allgather(send, send_count, send_type, receive, receive_count,
                                                   receive_type, comm);
                  });
}
int MPI_Neighbor_allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                            const int receive_counts[], const int receive_displacements[],
                            MPI_Datatype receive_type, MPI_Comm comm) {
  return taken_or(
      {"MPI_Neighbor_allgatherv", Operation::allgatherv, equal_side(send, send_count, send_type),
       listed_side(receive, list_of(receive_counts), list_of(receive_displacements), receive_type), comm},
      [&] {
        return PMPI_Neighbor_allgatherv(send, send_count, send_type, receive, receive_counts,
                                        receive_displacements, receive_type, comm);
      });
}
int MPI_Neighbor_alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                          int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  return taken_or({"MPI_Neighbor_alltoall", Operation::alltoall, equal_side(send, send_count, send_type),
                   equal_side(receive, receive_count, receive_type), comm},
                  [&] {
                    return PMPI_Neighbor_alltoall(send, send_count, send_type, receive, receive_count,
                                                  receive_type, comm);
                  });
}
int MPI_Neighbor_alltoallv(const void* send, const int send_counts[], const int send_displacements[],
                           MPI_Datatype send_type, void* receive, const int receive_counts[],
                           const int receive_displacements[], MPI_Datatype receive_type, MPI_Comm comm) {
  return taken_or(
      {"MPI_Neighbor_alltoallv", Operation::alltoallv,
       listed_side(send, list_of(send_counts), list_of(send_displacements), send_type),
       listed_side(receive, list_of(receive_counts), list_of(receive_displacements), receive_type), comm},
      [&] {
        return PMPI_Neighbor_alltoallv(send, send_counts, send_displacements, send_type, receive,
                                       receive_counts, receive_displacements, receive_type, comm);
      });
}

int MPI_Neighbor_alltoallw(const void* send, const int send_counts[], const MPI_Aint send_displacements[],
                           const MPI_Datatype send_types[], void* receive, const int receive_counts[],
                           const MPI_Aint receive_displacements[], const MPI_Datatype receive_types[],
                           MPI_Comm comm) {
  report().handed_on("MPI_Neighbor_alltoallw", Reason::form);
  return PMPI_Neighbor_alltoallw(send, send_counts, send_displacements, send_types, receive, receive_counts,
                                 receive_displacements, receive_types, comm);
}
int MPI_Ineighbor_allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                            int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                            MPI_Request* request) {
  report().handed_on("MPI_Ineighbor_allgather", Reason::nonblocking);
  return PMPI_Ineighbor_allgather(send, send_count, send_type, receive, receive_count, receive_type, comm,
                                  request);
}
int MPI_Ineighbor_allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                             const int receive_counts[], const int receive_displacements[],
                             MPI_Datatype receive_type, MPI_Comm comm, MPI_Request* request) {
  report().handed_on("MPI_Ineighbor_allgatherv", Reason::nonblocking);
  return PMPI_Ineighbor_allgatherv(send, send_count, send_type, receive, receive_counts,
                                   receive_displacements, receive_type, comm, request);
}
int MPI_Ineighbor_alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                           int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                           MPI_Request* request) {
  report().handed_on("MPI_Ineighbor_alltoall", Reason::nonblocking);
  return PMPI_Ineighbor_alltoall(send, send_count, send_type, receive, receive_count, receive_type, comm,
                                 request);
}
int MPI_Ineighbor_alltoallv(const void* send, const int send_counts[], const int send_displacements[],
                            MPI_Datatype send_type, void* receive, const int receive_counts[],
                            const int receive_displacements[], MPI_Datatype receive_type, MPI_Comm comm,
                            MPI_Request* request) {
  report().handed_on("MPI_Ineighbor_alltoallv", Reason::nonblocking);
  return PMPI_Ineighbor_alltoallv(send, send_counts, send_displacements, send_type, receive, receive_counts,
                                  receive_displacements, receive_type, comm, request);
}
int MPI_Ineighbor_alltoallw(const void* send, const int send_counts[], const MPI_Aint send_displacements[],
                            const MPI_Datatype send_types[], void* receive, const int receive_counts[],
                            const MPI_Aint receive_displacements[], const MPI_Datatype receive_types[],
                            MPI_Comm comm, MPI_Request* request) {
  report().handed_on("MPI_Ineighbor_alltoallw", Reason::nonblocking);
  return PMPI_Ineighbor_alltoallw(send, send_counts, send_displacements, send_types, receive, receive_counts,
                                  receive_displacements, receive_types, comm, request);
}

int MPI_Finalize(void) {
  write_report();
  forget_communicators();
  return PMPI_Finalize();
}

}  // extern "C"
