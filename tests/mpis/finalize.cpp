// The last rank is done, and calls MPI_Finalize; the others match with it, and are told at once that it has
// left.
#include <chrono>
#include <cstdio>

#include "stream-triggering.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int value = 0, wrong = 0;
  if (rank != size - 1) {
    MPIS_Request request;
    MPIS_Recv_init(&value, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    auto const began = std::chrono::steady_clock::now();
    wrong += MPIS_Match(&request, MPI_STATUS_IGNORE) != MPIS_PEER_LOST;
    wrong += std::chrono::steady_clock::now() - began > std::chrono::seconds(240);
    wrong += MPIS_Request_free(&request) != MPIS_SUCCESS;
  }
  if (wrong == 0) std::printf("kept finalize;\n");
  std::fflush(stdout);
  MPI_Finalize();
}
