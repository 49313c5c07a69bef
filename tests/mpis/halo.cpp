// Halos of a line of ranks with two ends, which have no neighbour there.
#include <cstdio>

#include "backend.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int const left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
  int const width = 3000;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_memory_alloc_kinds", "system");
  void* memory[4];
  for (void*& m : memory)
    wrong += MPIS_Alloc_mem(width * static_cast<MPI_Aint>(sizeof(int)), info, &m) != MPIS_SUCCESS;
  int* buffer[4];
  for (int k = 0; k < 4; ++k) buffer[k] = static_cast<int*>(memory[k]);
  MPIS_Queue queue;
  MPIS_Queue_init(&queue, QUEUE_TYPE, nullptr);
  MPIS_Request requests[4];
  MPIS_Recv_init(buffer[0], width, MPI_INT, left, 50, MPI_COMM_WORLD, info, &requests[0]);
  MPIS_Recv_init(buffer[1], width, MPI_INT, right, 50, MPI_COMM_WORLD, info, &requests[1]);
  MPIS_Send_init(buffer[2], width, MPI_INT, left, 50, MPI_COMM_WORLD, info, &requests[2]);
  MPIS_Send_init(buffer[3], width, MPI_INT, right, 50, MPI_COMM_WORLD, info, &requests[3]);
  wrong += MPIS_Matchall(4, requests, MPI_STATUSES_IGNORE) != MPIS_SUCCESS;
  for (int step = 0; step < 40; ++step) {
    MPIS_Enqueue_startall(queue, 2, requests);
    for (int k = 0; k < width; ++k) buffer[2][k] = buffer[3][k] = 100 * rank + step;
    MPIS_Enqueue_startall(queue, 2, &requests[2]);
    MPIS_Enqueue_waitall(queue);
    wrong += MPIS_Queue_wait(queue) != MPIS_SUCCESS;
    for (int k = 0; k < width; ++k) {
      wrong += left != MPI_PROC_NULL && buffer[0][k] != 100 * left + step;
      wrong += right != MPI_PROC_NULL && buffer[1][k] != 100 * right + step;
    }
  }
  MPIS_Request_freeall(4, requests);
  for (void* m : memory) MPIS_Free_mem(m);
  MPIS_Queue_free(&queue);
  MPI_Info_free(&info);
  if (wrong == 0) std::printf("kept halo;\n");
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
