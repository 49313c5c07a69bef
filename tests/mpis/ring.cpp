// A token goes round the ring; every rank adds its number. Requests are matched without waiting.
#include <cstdio>
#include <cstdlib>

#include "backend.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int const right = (rank + 1) % size, left = (rank + size - 1) % size;
  Reached<int> out(1), in(1);
  int wrong = 0;
  MPIS_Queue queue;
  if (MPIS_Queue_init(&queue, QUEUE_TYPE, nullptr) != MPIS_SUCCESS) std::abort();
  MPIS_Request requests[2], matches[2];
  MPIS_Recv_init(in.data(), 1, MPI_INT, left, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPIS_Send_init(out.data(), 1, MPI_INT, right, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  wrong += MPIS_Enqueue_start(queue, &requests[1]) != MPIS_NOT_READY;
  for (int k = 0; k < 2; ++k) MPIS_Imatch(&requests[k], &matches[k]);
  MPI_Status statuses[2];
  wrong += MPIS_Waitall(2, matches, statuses) != MPIS_SUCCESS;
  wrong += statuses[0].MPI_SOURCE != left || statuses[0].MPI_TAG != 3;
  int count = 0;
  MPI_Get_count(&statuses[0], MPI_INT, &count);
  wrong += count != 1;
  int matched = 0;
  MPIS_Is_matched(&requests[0], &matched);
  wrong += matched != 1;
  for (int lap = 0; lap < 10; ++lap) {
    if (rank != 0) {
      MPIS_Enqueue_start(queue, &requests[0]);
      MPIS_Enqueue_waitall(queue);
      MPIS_Queue_wait(queue);
    }
    *out = rank == 0 ? lap : *in + rank;
    MPIS_Enqueue_start(queue, &requests[1]);
    if (rank == 0) MPIS_Enqueue_start(queue, &requests[0]);
    MPIS_Enqueue_waitall(queue);
    wrong += MPIS_Queue_wait(queue) != MPIS_SUCCESS;
    if (rank == 0) wrong += *in != lap + size * (size - 1) / 2;
  }
  wrong += MPIS_Request_freeall(2, requests) != MPIS_SUCCESS;
  wrong += MPIS_Queue_free(&queue) != MPIS_SUCCESS;
  if (wrong == 0) std::printf("kept ring;\n");
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
