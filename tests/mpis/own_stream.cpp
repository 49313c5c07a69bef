// A queue on a stream of the program's own, and buffers that are memory of its GPU: what kernels store and load there.
// They are called by the library's own bench, which stands for a vendor's runtime.
#include <cstdio>
#include <cstdlib>

#include "queue/gpu/message_library.hpp"
#include "stream-triggering.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int const gpus = std::atoi(std::getenv("HOSTLESS_MPIS_GPUS")), width = 100000;
  auto const bench = hostless::gpu::message_library().bench(rank % gpus);
  void* stream = bench->stream();
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_memory_alloc_kinds", "cuda:device");
  void *memory[2], *shown;
  for (void*& m : memory) wrong += MPIS_Alloc_mem(width, info, &m) != MPIS_SUCCESS;
  wrong += MPIS_Alloc_mem(width, MPI_INFO_NULL, &shown) != MPIS_SUCCESS;
  auto* const out = static_cast<std::byte*>(memory[0]);
  auto* const in = static_cast<std::byte*>(memory[1]);
  auto* const seen = static_cast<std::byte*>(shown);
  for (int k = 0; k < width; ++k) seen[k] = static_cast<std::byte>(rank);
  MPIS_Queue queue;
  wrong += MPIS_Queue_init(&queue, GPU_MEM_OPS, &stream) != MPIS_SUCCESS;
  MPIS_Request requests[2];
  MPIS_Recv_init(in, width, MPI_BYTE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, info, &requests[0]);
  MPIS_Send_init(out, width, MPI_BYTE, (rank + 1) % size, 0, MPI_COMM_WORLD, info, &requests[1]);
  wrong += MPIS_Matchall(2, requests, MPI_STATUSES_IGNORE) != MPIS_SUCCESS;
  bench->add_to_bytes(out, seen, width, 1);
  for (int lap = 0; lap < size; ++lap) {
    wrong += MPIS_Enqueue_startall(queue, 2, requests) != MPIS_SUCCESS;
    wrong += MPIS_Enqueue_waitall(queue) != MPIS_SUCCESS;
    bench->add_to_bytes(out, in, width, 1);
  }
  bench->add_to_bytes(seen, out, width, 0);
  wrong += MPIS_Queue_wait(queue) != MPIS_SUCCESS;
  for (int k = 0; k < width; ++k) wrong += seen[k] != static_cast<std::byte>(rank + 1 + size);  // once round
  wrong += MPIS_Request_freeall(2, requests) != MPIS_SUCCESS;
  wrong += MPIS_Queue_free(&queue) != MPIS_SUCCESS;
  for (void* const m : {memory[0], memory[1], shown}) wrong += MPIS_Free_mem(m) != MPIS_SUCCESS;
  wrong += MPIS_Free_mem(shown) != MPIS_INVALID_REQUEST_STATE;
  MPI_Info_free(&info);
  if (wrong == 0) std::printf("kept own_stream;\n");
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
