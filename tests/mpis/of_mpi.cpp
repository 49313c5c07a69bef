// What only an MPI has: derived datatypes, communicators that are freed, and intercommunicators.
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "stream-triggering.h"

namespace {

int wrong = 0, rank = 0, size = 0;

void expect(bool holds, char const* what) {
  if (holds) return;
  std::printf("%s: '%s'\n", what, hostless_last_error());
  ++wrong;
}

bool is_refused(MPI_Datatype type) {
  int memory[4] = {};
  MPIS_Request request = MPIS_REQUEST_NULL;
  bool const sent = MPIS_Send_init(memory, 1, type, rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request) !=
                    MPIS_UNSUPPORTED_BEHAVIOR;
  bool const received = MPIS_Recv_init(memory, 1, type, rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request) !=
                        MPIS_UNSUPPORTED_BEHAVIOR;
  return !sent && !received && std::strstr(hostless_last_error(), "a datatype") != nullptr;
}

// One element to the rank itself.
void carries(MPI_Datatype type, char const* what) {
  int out[300], in[300] = {}, bytes = 0;
  for (int k = 0; k < 300; ++k) out[k] = 1000 * k + rank;
  MPI_Type_size(type, &bytes);
  MPIS_Request requests[2];
  MPIS_Queue queue;
  expect(MPIS_Queue_init(&queue, THREAD, nullptr) == MPIS_SUCCESS, what);
  if (MPIS_Send_init(out, 1, type, rank, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]) != MPIS_SUCCESS ||
      MPIS_Recv_init(in, 1, type, rank, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]) != MPIS_SUCCESS)
    return expect(false, what);
  expect(MPIS_Matchall(2, requests, MPI_STATUSES_IGNORE) == MPIS_SUCCESS, what);
  expect(MPIS_Enqueue_startall(queue, 2, requests) == MPIS_SUCCESS, what);
  expect(MPIS_Enqueue_waitall(queue) == MPIS_SUCCESS, what);
  expect(MPIS_Queue_wait(queue) == MPIS_SUCCESS, what);
  expect(std::memcmp(in, out, static_cast<std::size_t>(bytes)) == 0 && bytes > 0, what);
  expect(MPIS_Request_freeall(2, requests) == MPIS_SUCCESS, what);
  expect(MPIS_Queue_free(&queue) == MPIS_SUCCESS, what);
}

void datatypes() {
  int ones[] = {1, 1}, backwards[] = {1, 0};
  MPI_Datatype reversed, gaps, as_wide, copy, row, mixed, shifted;
  MPI_Type_indexed(2, ones, backwards, MPI_INT, &reversed);
  expect(is_refused(reversed), "bytes in another order");
  MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
  expect(is_refused(gaps), "a gap");
  MPI_Type_create_resized(gaps, 0, 8, &as_wide);
  expect(is_refused(as_wide), "a gap that the extent does not show");
  MPI_Type_dup(reversed, &copy);
  expect(is_refused(copy), "a copy of what is refused");
  int const at[] = {1};
  MPI_Datatype behind;
  MPI_Type_indexed(1, ones, at, MPI_INT, &behind);
  MPI_Type_create_resized(behind, 0, 4, &shifted);
  expect(is_refused(shifted), "an element that begins behind its place");
  expect(is_refused(MPI_DATATYPE_NULL), "no datatype");
  MPI_Type_contiguous(300, MPI_INT, &row);  // more bytes than one byte counts
  carries(row, "a row");
  MPI_Aint const begins[] = {0, 8};
  MPI_Datatype const parts[] = {MPI_DOUBLE, MPI_INT64_T};
  MPI_Type_create_struct(2, ones, begins, parts, &mixed);
  carries(mixed, "a struct without gaps, as it lies");
  carries(MPI_DOUBLE, "a named one");
  for (MPI_Datatype* const one : {&reversed, &gaps, &as_wide, &copy, &row, &mixed, &shifted, &behind})
    MPI_Type_free(one);
}

// Requests do not outlive their communicator.
void freed_communicator() {
  int out = 1, in = 0;
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPIS_Request requests[2];
  MPIS_Queue queue;
  MPIS_Queue_init(&queue, THREAD, nullptr);
  MPIS_Send_init(&out, 1, MPI_INT, (rank + 1) % size, 1, copy, MPI_INFO_NULL, &requests[0]);
  MPIS_Recv_init(&in, 1, MPI_INT, (rank + size - 1) % size, 1, copy, MPI_INFO_NULL, &requests[1]);
  expect(MPIS_Matchall(2, requests, MPI_STATUSES_IGNORE) == MPIS_SUCCESS, "match");
  MPI_Comm_free(&copy);
  expect(MPIS_Enqueue_startall(queue, 2, requests) == MPIS_INVALID_REQUEST_STATE, "start after the end");
  expect(std::strstr(hostless_last_error(), "closed") != nullptr, "the text of a start after the end");
  expect(MPIS_Request_freeall(2, requests) == MPIS_SUCCESS, "free after the end");
  MPIS_Queue_free(&queue);
}

void two_groups() {
  if (size < 2) return;
  int byte = 0;
  MPI_Comm part, both;
  bool const first = rank == 0;  // groups of different sizes
  MPI_Comm_split(MPI_COMM_WORLD, first ? 0 : 1, rank, &part);
  MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, first ? 1 : 0, 5, &both);
  MPIS_Request request;
  expect(MPIS_Send_init(&byte, 1, MPI_BYTE, 0, 1, both, MPI_INFO_NULL, &request) == MPIS_UNSUPPORTED_BEHAVIOR,
         "an intercommunicator");
  expect(std::strstr(hostless_last_error(), "MPI_Intercomm_merge") != nullptr, "what to do with it");
  MPI_Comm merged;
  MPI_Intercomm_merge(both, first ? 0 : 1, &merged);
  expect(MPIS_Barrier_init(merged, MPI_INFO_NULL, &request) == MPIS_SUCCESS, "one that was merged");
  expect(MPIS_Request_free(&request) == MPIS_SUCCESS, "its end");
  for (MPI_Comm* const one : {&merged, &both, &part}) MPI_Comm_free(one);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  datatypes();
  freed_communicator();
  two_groups();
  if (wrong == 0) std::printf("kept of_mpi;\n");
  std::fflush(stdout);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
