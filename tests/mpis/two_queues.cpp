// Two queues at once, one for each direction of the ring.
#include <cstdio>

#include "backend.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int const neighbour[2] = {(rank + 1) % size, (rank + size - 1) % size};
  MPIS_Queue queue[2];
  MPIS_Request requests[2][2];
  Reached<long> out[2] = {Reached<long>(100), Reached<long>(20000)},
                in[2] = {Reached<long>(100), Reached<long>(20000)};
  for (int d = 0; d < 2; ++d) {
    wrong += MPIS_Queue_init(&queue[d], QUEUE_TYPE, nullptr) != MPIS_SUCCESS;
    MPI_Count const count = out[d].size();
    MPIS_Send_init(out[d].data(), count, MPI_LONG, neighbour[d], d, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &requests[d][0]);
    MPIS_Recv_init(in[d].data(), count, MPI_LONG, neighbour[1 - d], d, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &requests[d][1]);
  }
  MPIS_Matchall(2, requests[0], MPI_STATUSES_IGNORE);
  MPIS_Matchall(2, requests[1], MPI_STATUSES_IGNORE);
  for (int round = 0; round < 30; ++round) {
    for (int d = 0; d < 2; ++d) {
      for (long& v : out[d]) v = 1000 * rank + 10 * round + d;
      MPIS_Enqueue_startall(queue[d], 2, requests[d]);
    }
    wrong += MPIS_Enqueue_start(queue[1], &requests[0][0]) != MPIS_INVALID_REQUEST_STATE;
    for (int d = 1; d >= 0; --d) MPIS_Enqueue_waitall(queue[d]);
    for (int d = 0; d < 2; ++d) {
      wrong += MPIS_Queue_wait(queue[d]) != MPIS_SUCCESS;
      for (long const v : in[d]) wrong += v != 1000 * neighbour[1 - d] + 10 * round + d;
    }
  }
  for (int d = 0; d < 2; ++d) {
    MPIS_Request_freeall(2, requests[d]);
    MPIS_Queue_free(&queue[d]);
  }
  if (wrong == 0) std::printf("kept two_queues;\n");
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
