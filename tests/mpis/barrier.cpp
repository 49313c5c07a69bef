// Barriers between messages: what was sent before one is there after it.
#include <cstdio>

#include "backend.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPIS_Queue queue;
  MPIS_Queue_init(&queue, QUEUE_TYPE, nullptr);
  MPIS_Request barrier, all;
  wrong += MPIS_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &barrier) != MPIS_SUCCESS;
  wrong += MPIS_Match(&barrier, MPI_STATUS_IGNORE) != MPIS_SUCCESS;
  Reached<long> numbers(2);
  long &mine = numbers.data()[0], &least = numbers.data()[1];
  MPIS_Allreduce_init(&mine, &least, 1, MPI_LONG, MPI_MIN, MPI_COMM_WORLD, MPI_INFO_NULL, &all);
  MPIS_Match(&all, MPI_STATUS_IGNORE);
  for (int round = 1; round <= 50; ++round) {
    mine = round * (rank + 1L);
    MPIS_Enqueue_start(queue, &barrier);
    MPIS_Enqueue_waitall(queue);
    MPIS_Enqueue_start(queue, &all);
    MPIS_Enqueue_waitall(queue);
    MPIS_Enqueue_start(queue, &barrier);
    MPIS_Enqueue_waitall(queue);
    wrong += MPIS_Queue_wait(queue) != MPIS_SUCCESS;
    wrong += least != round;
  }
  MPIS_Request_free(&barrier);
  MPIS_Request_free(&all);
  wrong += MPIS_Request_free(&all) != MPIS_INVALID_REQUEST_STATE;
  MPIS_Queue_free(&queue);
  if (wrong == 0) std::printf("kept barrier;\n");
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
