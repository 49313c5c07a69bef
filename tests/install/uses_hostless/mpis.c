/* A program in C for MPIS_...: a barrier of ranks that are threads. */
#include <stdio.h>

#include "stream-triggering.h"

int main(int argc, char** argv) {
  MPIS_Queue queue;
  MPIS_Request barrier;
  int code;
  MPI_Init(&argc, &argv);
  code = MPIS_Queue_init(&queue, THREAD, NULL);
  if (code == MPIS_SUCCESS) code = MPIS_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &barrier);
  if (code == MPIS_SUCCESS) code = MPIS_Match(&barrier, MPI_STATUS_IGNORE);
  if (code == MPIS_SUCCESS) code = MPIS_Enqueue_start(queue, &barrier);
  if (code == MPIS_SUCCESS) code = MPIS_Enqueue_waitall(queue);
  if (code == MPIS_SUCCESS) code = MPIS_Queue_wait(queue);
  if (code != MPIS_SUCCESS) printf("%s\n", hostless_last_error());
  MPI_Finalize();
  return code == MPIS_SUCCESS ? 0 : 1;
}
