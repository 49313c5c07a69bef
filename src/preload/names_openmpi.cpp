// Persistent collectives, as Open MPI has had them before MPI 4.
#include <mpi.h>

// after it
#include <mpi-ext.h>

#include "preload/taken_or.hpp"

using namespace hostless::preload;

extern "C" {

int MPIX_Neighbor_allgather_init(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                                 int receive_count, MPI_Datatype receive_type, MPI_Comm comm, MPI_Info info,
                                 MPI_Request* request) {
  report().handed_on("MPIX_Neighbor_allgather_init", Reason::persistent);
  return PMPIX_Neighbor_allgather_init(send, send_count, send_type, receive, receive_count, receive_type,
                                       comm, info, request);
}
int MPIX_Neighbor_allgatherv_init(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                                  const int receive_counts[], const int receive_displacements[],
                                  MPI_Datatype receive_type, MPI_Comm comm, MPI_Info info,
                                  MPI_Request* request) {
  report().handed_on("MPIX_Neighbor_allgatherv_init", Reason::persistent);
  return PMPIX_Neighbor_allgatherv_init(send, send_count, send_type, receive, receive_counts,
                                        receive_displacements, receive_type, comm, info, request);
}
int MPIX_Neighbor_alltoall_init(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                                int receive_count, MPI_Datatype receive_type, MPI_Comm comm, MPI_Info info,
                                MPI_Request* request) {
  report().handed_on("MPIX_Neighbor_alltoall_init", Reason::persistent);
  return PMPIX_Neighbor_alltoall_init(send, send_count, send_type, receive, receive_count, receive_type, comm,
                                      info, request);
}
int MPIX_Neighbor_alltoallv_init(const void* send, const int send_counts[], const int send_displacements[],
                                 MPI_Datatype send_type, void* receive, const int receive_counts[],
                                 const int receive_displacements[], MPI_Datatype receive_type, MPI_Comm comm,
                                 MPI_Info info, MPI_Request* request) {
  report().handed_on("MPIX_Neighbor_alltoallv_init", Reason::persistent);
  return PMPIX_Neighbor_alltoallv_init(send, send_counts, send_displacements, send_type, receive,
                                       receive_counts, receive_displacements, receive_type, comm, info,
                                       request);
}
int MPIX_Neighbor_alltoallw_init(const void* send, const int send_counts[],
                                 const MPI_Aint send_displacements[], const MPI_Datatype send_types[],
                                 void* receive, const int receive_counts[],
                                 const MPI_Aint receive_displacements[], const MPI_Datatype receive_types[],
                                 MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  report().handed_on("MPIX_Neighbor_alltoallw_init", Reason::persistent);
  return PMPIX_Neighbor_alltoallw_init(send, send_counts, send_displacements, send_types, receive,
                                       receive_counts, receive_displacements, receive_types, comm, info,
                                       request);
}

}  // extern "C"
