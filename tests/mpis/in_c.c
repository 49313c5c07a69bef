/* A program in C, whose main ends without a return; it passes through what a program may do wrong. */
#include <stdio.h>
#include <string.h>

#include "stream-triggering.h"

static _Thread_local int failures = 0, rank = 0; /* where ranks are threads, of each */

/* The code, and a text of this call's own. */
static void refused(int code, int right, char const* what) {
  static _Thread_local char last[1000] = "";
  char const* const text = hostless_last_error();
  if (code != right || *text == '\0' || strcmp(text, last) == 0) {
    printf("%s: code %d instead of %d, '%s'\n", what, code, right, text);
    ++failures;
  }
  strncpy(last, text, sizeof last - 1);
}
static void fine(int code, char const* what) {
  if (code != MPIS_SUCCESS) {
    printf("%s: code %d, '%s'\n", what, code, hostless_last_error());
    ++failures;
  }
}

static void of_handles(MPIS_Queue queue) {
  char byte = 0;
  MPIS_Request request, stale, none = MPIS_REQUEST_NULL;
  int flag = 0;
  fine(MPIS_Send_init(&byte, 1, MPI_BYTE, rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request), "send_init");
  stale = request;
  fine(MPIS_Request_free(&request), "free");
  MPIS_Queue null_queue = MPIS_QUEUE_NULL;
  refused(MPIS_Queue_match(null_queue, &request, MPI_STATUS_IGNORE), MPIS_UNSUPPORTED_BEHAVIOR, "match on no queue");
  refused(MPIS_Queue_wait(null_queue), MPIS_UNSUPPORTED_BEHAVIOR, "wait for no queue");
  refused(MPIS_Match(&stale, MPI_STATUS_IGNORE), MPIS_INVALID_REQUEST_STATE, "match of a freed one");
  refused(MPIS_Queue_init(NULL, THREAD, NULL), MPIS_INVALID_REQUEST_STATE, "nowhere to put a queue");
  refused(MPIS_Enqueue_start(queue, &stale), MPIS_INVALID_REQUEST_STATE, "start of a freed one");
  refused(MPIS_Queue_init(&null_queue, GPU_MEM_OPS, NULL), MPIS_UNSUPPORTED_BEHAVIOR, "a stream without GPUs");
  refused(MPIS_Queue_init(&null_queue, CXI, NULL), MPIS_UNSUPPORTED_BEHAVIOR, "a queue of CXI");
  refused(MPIS_Wait(&stale, MPI_STATUS_IGNORE), MPIS_INVALID_REQUEST_STATE, "wait for a freed one");
  refused(MPIS_Matchall(1, NULL, MPI_STATUSES_IGNORE), MPIS_INVALID_REQUEST_STATE, "matchall of NULL");
  refused(MPIS_Is_matched(&stale, &flag), MPIS_INVALID_REQUEST_STATE, "is_matched of a freed one");
  refused(MPIS_Imatch(&none, NULL), MPIS_INVALID_REQUEST_STATE, "imatch to nowhere");
  refused(MPIS_Request_free(&stale), MPIS_INVALID_REQUEST_STATE, "second free");
  refused(MPIS_Waitall(2, NULL, MPI_STATUSES_IGNORE), MPIS_INVALID_REQUEST_STATE, "waitall of NULL");
}

static void of_arguments(void) {
  char byte = 0;
  double value = 0;
  MPIS_Request request;
  refused(MPIS_Send_init(&byte, -1, MPI_BYTE, rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
          MPIS_UNSUPPORTED_BEHAVIOR, "a count below 0");
  refused(MPIS_Allreduce_init(&value, &value, 1, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
          MPIS_UNSUPPORTED_BEHAVIOR, "a sum of characters");
  refused(MPIS_Recv_init(&value, (MPI_Count)1 << 61, MPI_DOUBLE, rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                         &request),
          MPIS_UNSUPPORTED_BEHAVIOR, "more bytes than 64 bits count");
  refused(MPIS_Recv_init(&byte, 1, MPI_BYTE, rank, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
          MPIS_UNSUPPORTED_BEHAVIOR, "any tag");
  if (strncmp(hostless_last_error(), "any tag (", 9) != 0) printf("any tag is called '%s'\n", hostless_last_error()), ++failures;
  refused(MPIS_Send_init(&byte, 1, MPI_BYTE, rank, 0, MPI_COMM_NULL, MPI_INFO_NULL, &request),
          MPIS_UNSUPPORTED_BEHAVIOR, "no communicator");
}

/* Whoever sends less than there is room for is told of by the match. */
static void of_statuses(MPIS_Queue queue, int ranks) {
  double out[3] = {0}, in[5] = {0};
  int count = -1, other = (rank + 1) % ranks;
  MPIS_Request requests[2], match;
  MPI_Status statuses[2], status;
  fine(MPIS_Send_init(out, 3, MPI_DOUBLE, (rank + ranks - 1) % ranks, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]),
       "send_init");
  fine(MPIS_Recv_init(in, 5, MPI_DOUBLE, other, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]), "recv_init");
  fine(MPIS_Imatch(&requests[0], &match), "imatch");
  fine(MPIS_Queue_match(queue, &requests[1], &statuses[1]), "match on a queue");
  fine(MPIS_Wait(&match, &statuses[0]), "wait for a match");
  for (int k = 0; k < 2; ++k) {
    MPI_Get_count(&statuses[k], MPI_DOUBLE, &count);
    if (count != 3) printf("the status of match %d says %d elements\n", k, count), ++failures;
    MPI_Get_count(&statuses[k], MPI_BYTE, &count);
    if (count != 24) printf("the status of match %d says %d bytes\n", k, count), ++failures;
  }
  fine(MPIS_Request_freeall(2, requests), "freeall");
  fine(MPIS_Recv_init(in, 5, MPI_DOUBLE, MPI_PROC_NULL, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]), "recv_init of none");
  refused(MPIS_Wait(&requests[0], &status), MPIS_INVALID_REQUEST_STATE, "wait for a persistent one of nobody");
  fine(MPIS_Match(&requests[0], &status), "match of none");
  fine(MPIS_Imatch(&requests[0], &match), "imatch of none");
  fine(MPIS_Wait(&match, &status), "wait for a match of none");
  MPI_Get_count(&status, MPI_DOUBLE, &count);
  if (count != 0) printf("the match of nobody says %d elements\n", count), ++failures;
  fine(MPIS_Request_free(&requests[0]), "free");
}

static void in_place(MPIS_Queue queue, int ranks) {
  double value = rank + 1;
  MPIS_Request request;
  fine(MPIS_Allreduce_init(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &request),
       "allreduce_init in place");
  fine(MPIS_Match(&request, MPI_STATUS_IGNORE), "match");
  fine(MPIS_Enqueue_start(queue, &request), "start");
  fine(MPIS_Enqueue_waitall(queue), "waitall");
  fine(MPIS_Queue_wait(queue), "queue_wait");
  if (value != 0.5 * ranks * (ranks + 1)) {
    printf("a sum in place is %g\n", value);
    ++failures;
  }
  fine(MPIS_Request_free(&request), "free");
}

int main(int argc, char** argv) {
  int ranks = 0;
  MPIS_Queue queue;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  fine(MPIS_Queue_init(&queue, THREAD, NULL), "queue_init");
  of_handles(queue);
  of_arguments();
  of_statuses(queue, ranks);
  in_place(queue, ranks);
  fine(MPIS_Queue_free(&queue), "queue_free");
  if (failures == 0) printf("kept in_c;\n");
  fflush(stdout);
  MPI_Finalize();
}
