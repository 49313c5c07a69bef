// A program that starts MPI by itself, where MPIS_... is not known: without MPI_THREAD_MULTIPLE, so calls of the library
// do the work. Before and after MPI there is nothing to make requests of, and that is said.
#include <cstdio>

#include "stream-triggering.h"
#undef MPI_Init

int main(int argc, char** argv) {
  int rank, size, wrong = 0, out, in = -1;
  MPIS_Request requests[2];
  wrong += MPIS_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]) != MPIS_UNSUPPORTED_BEHAVIOR;
  wrong += MPIS_Send_init(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]) !=
           MPIS_UNSUPPORTED_BEHAVIOR;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  out = rank;
  MPIS_Queue queue;
  wrong += MPIS_Queue_init(&queue, THREAD, nullptr) != MPIS_SUCCESS;
  MPIS_Recv_init(&in, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPIS_Send_init(&out, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  wrong += MPIS_Matchall(2, requests, MPI_STATUSES_IGNORE) != MPIS_SUCCESS;
  for (int round = 0; round < 10; ++round) {
    out = 100 * round + rank;
    wrong += MPIS_Enqueue_startall(queue, 2, requests) != MPIS_SUCCESS;
    wrong += MPIS_Enqueue_waitall(queue) != MPIS_SUCCESS;
    wrong += MPIS_Queue_wait(queue) != MPIS_SUCCESS;
    wrong += in != 100 * round + (rank + 1) % size;
  }
  wrong += MPIS_Request_freeall(2, requests) != MPIS_SUCCESS;
  wrong += MPIS_Queue_free(&queue) != MPIS_SUCCESS;
  MPI_Finalize();
  wrong += MPIS_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]) != MPIS_UNSUPPORTED_BEHAVIOR;
  if (wrong == 0) std::printf("kept plain_init;\n");
  return wrong == 0 ? 0 : 1;
}
