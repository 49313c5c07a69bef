// What MPI 4 has beside: persistent collectives, and counts of 64 bits.
#include <mpi.h>

#include "preload/taken_or.hpp"

using namespace hostless::preload;

extern "C" {

int MPI_Neighbor_allgather_init(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                                int receive_count, MPI_Datatype receive_type, MPI_Comm comm, MPI_Info info,
                                MPI_Request* request) {
  report().handed_on("MPI_Neighbor_allgather_init", Reason::persistent);
  return PMPI_Neighbor_allgather_init(send, send_count, send_type, receive, receive_count, receive_type, comm,
                                      info, request);
}
int MPI_Neighbor_allgatherv_init(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                                 const int receive_counts[], const int receive_displacements[],
                                 MPI_Datatype receive_type, MPI_Comm comm, MPI_Info info,
                                 MPI_Request* request) {
  report().handed_on("MPI_Neighbor_allgatherv_init", Reason::persistent);
  return PMPI_Neighbor_allgatherv_init(send, send_count, send_type, receive, receive_counts,
                                       receive_displacements, receive_type, comm, info, request);
}
int MPI_Neighbor_alltoall_init(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                               int receive_count, MPI_Datatype receive_type, MPI_Comm comm, MPI_Info info,
                               MPI_Request* request) {
  report().handed_on("MPI_Neighbor_alltoall_init", Reason::persistent);
  return PMPI_Neighbor_alltoall_init(send, send_count, send_type, receive, receive_count, receive_type, comm,
                                     info, request);
}
int MPI_Neighbor_alltoallv_init(const void* send, const int send_counts[], const int send_displacements[],
                                MPI_Datatype send_type, void* receive, const int receive_counts[],
                                const int receive_displacements[], MPI_Datatype receive_type, MPI_Comm comm,
                                MPI_Info info, MPI_Request* request) {
  report().handed_on("MPI_Neighbor_alltoallv_init", Reason::persistent);
  return PMPI_Neighbor_alltoallv_init(send, send_counts, send_displacements, send_type, receive,
                                      receive_counts, receive_displacements, receive_type, comm, info,
                                      request);
}
int MPI_Neighbor_alltoallw_init(const void* send, const int send_counts[],
                                const MPI_Aint send_displacements[], const MPI_Datatype send_types[],
                                void* receive, const int receive_counts[],
                                const MPI_Aint receive_displacements[], const MPI_Datatype receive_types[],
                                MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  report().handed_on("MPI_Neighbor_alltoallw_init", Reason::persistent);
  return PMPI_Neighbor_alltoallw_init(send, send_counts, send_displacements, send_types, receive,
                                      receive_counts, receive_displacements, receive_types, comm, info,
                                      request);
}

int MPI_Neighbor_allgather_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive,
                             MPI_Count receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  return taken_or({"MPI_Neighbor_allgather_c", Operation::allgather, equal_side(send, send_count, send_type),
                   equal_side(receive, receive_count, receive_type), comm},
                  [&] {
                    return PMPI_Neighbor_allgather_c(send, send_count, send_type, receive, receive_count,
                                                     receive_type, comm);
                  });
}
int MPI_Neighbor_allgatherv_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive,
                              const MPI_Count receive_counts[], const MPI_Aint receive_displacements[],
                              MPI_Datatype receive_type, MPI_Comm comm) {
  return taken_or(
      {"MPI_Neighbor_allgatherv_c", Operation::allgatherv, equal_side(send, send_count, send_type),
       listed_side(receive, list_of(receive_counts), list_of(receive_displacements), receive_type), comm},
      [&] {
        return PMPI_Neighbor_allgatherv_c(send, send_count, send_type, receive, receive_counts,
                                          receive_displacements, receive_type, comm);
      });
}
int MPI_Neighbor_alltoall_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive,
                            MPI_Count receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  return taken_or({"MPI_Neighbor_alltoall_c", Operation::alltoall, equal_side(send, send_count, send_type),
                   equal_side(receive, receive_count, receive_type), comm},
                  [&] {
                    return PMPI_Neighbor_alltoall_c(send, send_count, send_type, receive, receive_count,
                                                    receive_type, comm);
                  });
}
int MPI_Neighbor_alltoallv_c(const void* send, const MPI_Count send_counts[],
                             const MPI_Aint send_displacements[], MPI_Datatype send_type, void* receive,
                             const MPI_Count receive_counts[], const MPI_Aint receive_displacements[],
                             MPI_Datatype receive_type, MPI_Comm comm) {
  return taken_or(
      {"MPI_Neighbor_alltoallv_c", Operation::alltoallv,
       listed_side(send, list_of(send_counts), list_of(send_displacements), send_type),
       listed_side(receive, list_of(receive_counts), list_of(receive_displacements), receive_type), comm},
      [&] {
        return PMPI_Neighbor_alltoallv_c(send, send_counts, send_displacements, send_type, receive,
                                         receive_counts, receive_displacements, receive_type, comm);
      });
}

int MPI_Neighbor_alltoallw_c(const void* send, const MPI_Count send_counts[],
                             const MPI_Aint send_displacements[], const MPI_Datatype send_types[],
                             void* receive, const MPI_Count receive_counts[],
                             const MPI_Aint receive_displacements[], const MPI_Datatype receive_types[],
                             MPI_Comm comm) {
  report().handed_on("MPI_Neighbor_alltoallw_c", Reason::form);
  return PMPI_Neighbor_alltoallw_c(send, send_counts, send_displacements, send_types, receive, receive_counts,
                                   receive_displacements, receive_types, comm);
}
int MPI_Ineighbor_allgather_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive,
                              MPI_Count receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                              MPI_Request* request) {
  report().handed_on("MPI_Ineighbor_allgather_c", Reason::nonblocking);
  return PMPI_Ineighbor_allgather_c(send, send_count, send_type, receive, receive_count, receive_type, comm,
                                    request);
}
int MPI_Ineighbor_allgatherv_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive,
                               const MPI_Count receive_counts[], const MPI_Aint receive_displacements[],
                               MPI_Datatype receive_type, MPI_Comm comm, MPI_Request* request) {
  report().handed_on("MPI_Ineighbor_allgatherv_c", Reason::nonblocking);
  return PMPI_Ineighbor_allgatherv_c(send, send_count, send_type, receive, receive_counts,
                                     receive_displacements, receive_type, comm, request);
}
int MPI_Ineighbor_alltoall_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive,
                             MPI_Count receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                             MPI_Request* request) {
  report().handed_on("MPI_Ineighbor_alltoall_c", Reason::nonblocking);
  return PMPI_Ineighbor_alltoall_c(send, send_count, send_type, receive, receive_count, receive_type, comm,
                                   request);
}
int MPI_Ineighbor_alltoallv_c(const void* send, const MPI_Count send_counts[],
                              const MPI_Aint send_displacements[], MPI_Datatype send_type, void* receive,
                              const MPI_Count receive_counts[], const MPI_Aint receive_displacements[],
                              MPI_Datatype receive_type, MPI_Comm comm, MPI_Request* request) {
  report().handed_on("MPI_Ineighbor_alltoallv_c", Reason::nonblocking);
  return PMPI_Ineighbor_alltoallv_c(send, send_counts, send_displacements, send_type, receive, receive_counts,
                                    receive_displacements, receive_type, comm, request);
}
int MPI_Ineighbor_alltoallw_c(const void* send, const MPI_Count send_counts[],
                              const MPI_Aint send_displacements[], const MPI_Datatype send_types[],
                              void* receive, const MPI_Count receive_counts[],
                              const MPI_Aint receive_displacements[], const MPI_Datatype receive_types[],
                              MPI_Comm comm, MPI_Request* request) {
  report().handed_on("MPI_Ineighbor_alltoallw_c", Reason::nonblocking);
  return PMPI_Ineighbor_alltoallw_c(send, send_counts, send_displacements, send_types, receive,
                                    receive_counts, receive_displacements, receive_types, comm, request);
}
int MPI_Neighbor_allgather_init_c(const void* send, MPI_Count send_count, MPI_Datatype send_type,
                                  void* receive, MPI_Count receive_count, MPI_Datatype receive_type,
                                  MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  report().handed_on("MPI_Neighbor_allgather_init_c", Reason::persistent);
  return PMPI_Neighbor_allgather_init_c(send, send_count, send_type, receive, receive_count, receive_type,
                                        comm, info, request);
}
int MPI_Neighbor_allgatherv_init_c(const void* send, MPI_Count send_count, MPI_Datatype send_type,
                                   void* receive, const MPI_Count receive_counts[],
                                   const MPI_Aint receive_displacements[], MPI_Datatype receive_type,
                                   MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  report().handed_on("MPI_Neighbor_allgatherv_init_c", Reason::persistent);
  return PMPI_Neighbor_allgatherv_init_c(send, send_count, send_type, receive, receive_counts,
                                         receive_displacements, receive_type, comm, info, request);
}
int MPI_Neighbor_alltoall_init_c(const void* send, MPI_Count send_count, MPI_Datatype send_type,
                                 void* receive, MPI_Count receive_count, MPI_Datatype receive_type,
                                 MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  report().handed_on("MPI_Neighbor_alltoall_init_c", Reason::persistent);
  return PMPI_Neighbor_alltoall_init_c(send, send_count, send_type, receive, receive_count, receive_type,
                                       comm, info, request);
}
int MPI_Neighbor_alltoallv_init_c(const void* send, const MPI_Count send_counts[],
                                  const MPI_Aint send_displacements[], MPI_Datatype send_type, void* receive,
                                  const MPI_Count receive_counts[], const MPI_Aint receive_displacements[],
                                  MPI_Datatype receive_type, MPI_Comm comm, MPI_Info info,
                                  MPI_Request* request) {
  report().handed_on("MPI_Neighbor_alltoallv_init_c", Reason::persistent);
  return PMPI_Neighbor_alltoallv_init_c(send, send_counts, send_displacements, send_type, receive,
                                        receive_counts, receive_displacements, receive_type, comm, info,
                                        request);
}
int MPI_Neighbor_alltoallw_init_c(const void* send, const MPI_Count send_counts[],
                                  const MPI_Aint send_displacements[], const MPI_Datatype send_types[],
                                  void* receive, const MPI_Count receive_counts[],
                                  const MPI_Aint receive_displacements[], const MPI_Datatype receive_types[],
                                  MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  report().handed_on("MPI_Neighbor_alltoallw_init_c", Reason::persistent);
  return PMPI_Neighbor_alltoallw_init_c(send, send_counts, send_displacements, send_types, receive,
                                        receive_counts, receive_displacements, receive_types, comm, info,
                                        request);
}

}  // extern "C"
