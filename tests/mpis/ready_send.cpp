// Ready sends between pairs of ranks: the receiver's answer of the round before says that it has started.
#include <cstdio>

#include "backend.hpp"

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int const other = rank % 2 == 0 ? rank + 1 : rank - 1;
  if (other < size) {
    Reached<double> data(5000), token(1);
    MPIS_Queue queue;
    MPIS_Queue_init(&queue, QUEUE_TYPE, nullptr);
    bool const sends = rank % 2 == 0;
    MPIS_Request bulk, answer;
    if (sends) {
      MPIS_Rsend_init(data.data(), 5000, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &bulk);
      MPIS_Recv_init(token.data(), 1, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &answer);
    } else {
      MPIS_Recv_init(data.data(), 5000, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &bulk);
      MPIS_Send_init(token.data(), 1, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &answer);
    }
    MPIS_Queue_match(queue, &bulk, MPI_STATUS_IGNORE);
    MPIS_Queue_match(queue, &answer, MPI_STATUS_IGNORE);
    for (int round = 1; round <= 50; ++round) {
      if (sends) {
        MPIS_Enqueue_start(queue, &answer);
        MPIS_Enqueue_waitall(queue);
        MPIS_Queue_wait(queue);
        for (double& d : data) d = round + *token;
        MPIS_Enqueue_start(queue, &bulk);
        MPIS_Enqueue_waitall(queue);
        wrong += MPIS_Queue_wait(queue) != MPIS_SUCCESS;
      } else {
        *token = 1000.0 * round;
        MPIS_Enqueue_start(queue, &bulk);
        MPIS_Enqueue_start(queue, &answer);
        MPIS_Enqueue_waitall(queue);
        wrong += MPIS_Queue_wait(queue) != MPIS_SUCCESS;
        for (double const d : data) wrong += d != round + 1000.0 * round;
      }
    }
    MPIS_Request_free(&bulk);
    MPIS_Request_free(&answer);
    MPIS_Queue_free(&queue);
  }
  if (wrong == 0) std::printf("kept ready_send;\n");
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
