/* Neighbourhood collectives from C, with the argument lists of MPI: a ring on one rank and on three threads, a star with
 * gaps, errors. */
#include <stdio.h>
#include <string.h>

#include "expect.h"
#include "hostless/neighbor.h"

static int said(const char* text) { return strstr(hostless_last_error(), text) != NULL; }

/* Three times, and the memory is free afterwards. */
static void go(hostless_exchange* exchange) {
  for (int turn = 0; exchange != NULL && turn < 3; ++turn) {
    EXPECT(hostless_exchange_start(exchange) == HOSTLESS_OK);
    EXPECT(hostless_exchange_wait(exchange) == HOSTLESS_OK);
  }
  hostless_exchange_free(exchange);
}

/* To the next rank and to the one before; of one rank both are itself. */
static int ring(hostless_transport* t, void* route) {
  int const me = hostless_rank(t), ranks = hostless_size(t);
  int const next = (me + 1) % ranks, last = (me + ranks - 1) % ranks;
  int const sources[] = {last, next}, destinations[] = {next, last};
  hostless_neighborhood_options options;
  hostless_neighborhood* n = NULL;
  hostless_exchange* exchange = NULL;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.route = route;
  options.ranks_per_node = 2;
  options.limit_s = 60;
  EXPECT(hostless_neighborhood_create(t, 2, sources, 2, destinations, &options, &n) == HOSTLESS_OK);
  if (n == NULL) return failures;

  double const values[] = {me + 0.25, me + 0.5};
  double gathered[4] = {0}, swapped[2] = {0};
  EXPECT(hostless_neighbor_allgather_init(values, 2, HOSTLESS_DATA_F64, gathered, 16, HOSTLESS_DATA_BYTE, n, &exchange) ==
         HOSTLESS_OK);
  go(exchange);
  EXPECT(gathered[0] == last + 0.25 && gathered[1] == last + 0.5 && gathered[2] == next + 0.25 && gathered[3] == next + 0.5);
  EXPECT(hostless_neighbor_alltoall_init(values, 1, HOSTLESS_DATA_F64, swapped, 1, HOSTLESS_DATA_F64, n, &exchange) ==
         HOSTLESS_OK);
  go(exchange);
  EXPECT(swapped[0] == last + 0.25 && swapped[1] == next + 0.5);

  /* From the rank before one number more than its number, from the next one too; in reverse order and with a gap. */
  float mine[3] = {10.F * (float)me, 10.F * (float)me + 1, 10.F * (float)me + 2}, all[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
  int const counts[] = {last + 1, next + 1}, places[] = {next + 2, 0};
  EXPECT(hostless_neighbor_allgatherv_init(mine, me + 1, HOSTLESS_DATA_F32, all, counts, places, HOSTLESS_DATA_F32, n,
                                           &exchange) == HOSTLESS_OK);
  go(exchange);
  for (int k = 0; k <= next; ++k) EXPECT(all[k] == 10.F * (float)next + (float)k);
  EXPECT(all[next + 1] == -1.F);
  for (int k = 0; k <= last; ++k) EXPECT(all[next + 2 + k] == 10.F * (float)last + (float)k);

  int32_t const numbers[] = {100 * me, 100 * me + 1, 100 * me + 2};
  int32_t got[3] = {-1, -1, -1};
  int const sent[] = {1, 2}, from[] = {2, 0}, received[] = {1, 2};
  EXPECT(hostless_neighbor_alltoallv_init(numbers, sent, from, HOSTLESS_DATA_I32, got, received, NULL, HOSTLESS_DATA_I32, n,
                                          &exchange) == HOSTLESS_OK);
  hostless_neighborhood_free(n); /* the exchange needs it no longer */
  go(exchange);
  EXPECT(got[0] == 100 * last + 2 && got[1] == 100 * next && got[2] == 100 * next + 1);
  return failures;
}

static int refuse(hostless_transport* t, void* user) {
  int const me = hostless_rank(t), other = 1 - me, strange = 7;
  int const counts[] = {1}, wrong[] = {me + 1}, negative[] = {-1};
  double const send[] = {1, 2};
  double receive[2] = {0};
  hostless_neighborhood_options options;
  hostless_neighborhood* n = NULL;
  hostless_exchange* exchange = NULL;
  (void)user;
  EXPECT(hostless_neighborhood_create(NULL, 0, NULL, 0, NULL, NULL, &n) == HOSTLESS_USAGE && said("transport is NULL"));
  EXPECT(hostless_neighborhood_create(t, 1, &other, 1, &other, NULL, NULL) == HOSTLESS_USAGE && said("neighborhood is NULL"));
  EXPECT(hostless_neighborhood_create(t, 1, NULL, 1, &other, NULL, &n) == HOSTLESS_USAGE &&
         said("sources is NULL, and indegree is 1"));
  EXPECT(hostless_neighborhood_create(t, 1, &other, -2, &other, NULL, &n) == HOSTLESS_USAGE && said("outdegree: -2"));
  EXPECT(hostless_neighborhood_create(t, 1, &strange, 1, &other, NULL, &n) == HOSTLESS_USAGE &&
         said("rank 0: sources[0] is 7, and there are 2 ranks"));
  EXPECT(hostless_neighborhood_create(t, me, &other, 0, NULL, NULL, &n) == HOSTLESS_USAGE &&
         said("rank 0 has rank 1 among its destinations not at all, which has it among its sources once"));
  memset(&options, 0, sizeof options);
  EXPECT(hostless_neighborhood_create(t, 1, &other, 1, &other, &options, &n) == HOSTLESS_USAGE &&
         said("options.struct_size: 0, which"));
  options.struct_size = sizeof options;
  options.limit_s = -1;
  EXPECT(hostless_neighborhood_create(t, 1, &other, 1, &other, &options, &n) == HOSTLESS_USAGE && said("options.limit_s: -1"));
  options.limit_s = 0;
  options.route = "teleport";
  EXPECT(hostless_neighborhood_create(t, 1, &other, 1, &other, &options, &n) == HOSTLESS_USAGE && said("'teleport'"));
  EXPECT(n == NULL);
  EXPECT(hostless_neighborhood_create(t, 1, &other, 1, &other, NULL, &n) == HOSTLESS_OK);

  EXPECT(hostless_neighbor_allgather_init(send, 1, HOSTLESS_DATA_F64, receive, 1, HOSTLESS_DATA_F64, NULL, &exchange) ==
             HOSTLESS_USAGE && said("neighborhood is NULL"));
  EXPECT(hostless_neighbor_allgather_init(send, 1, HOSTLESS_DATA_F64, receive, 1, HOSTLESS_DATA_F64, n, NULL) ==
             HOSTLESS_USAGE && said("exchange is NULL"));
  EXPECT(hostless_neighbor_allgather_init(send, 1, 9, receive, 1, HOSTLESS_DATA_F64, n, &exchange) == HOSTLESS_USAGE &&
         said("send_type: 9 (there is none)"));
  EXPECT(hostless_neighbor_allgather_init(send, -1, HOSTLESS_DATA_F64, receive, 1, HOSTLESS_DATA_F64, n, &exchange) ==
             HOSTLESS_USAGE && said("send_count: -1"));
  EXPECT(hostless_neighbor_alltoall_init(send, 1, HOSTLESS_DATA_F64, NULL, 1, HOSTLESS_DATA_F64, n, &exchange) ==
             HOSTLESS_USAGE && said("receive is NULL"));
  EXPECT(hostless_neighbor_alltoall_init(send, 1, HOSTLESS_DATA_F64, receive, 1, HOSTLESS_DATA_F32, n, &exchange) ==
             HOSTLESS_USAGE && said("alltoall: rank 0 sends 8 bytes to its destinations[0], rank 1, which receives 4"));
  EXPECT(hostless_neighbor_alltoallv_init(send, counts, NULL, HOSTLESS_DATA_F64, receive, wrong, NULL, HOSTLESS_DATA_F64, n,
                                          &exchange) == HOSTLESS_USAGE &&
         said("alltoallv: rank 0 sends 8 bytes to its destinations[0], rank 1, which receives 16 from its sources[0]"));
  EXPECT(hostless_neighbor_alltoallv_init(send, NULL, NULL, HOSTLESS_DATA_F64, receive, counts, NULL, HOSTLESS_DATA_F64, n,
                                          &exchange) == HOSTLESS_USAGE && said("send_counts is NULL"));
  EXPECT(hostless_neighbor_allgatherv_init(send, 1, HOSTLESS_DATA_F64, receive, counts, negative, HOSTLESS_DATA_F64, n,
                                           &exchange) == HOSTLESS_USAGE &&
         said("rank 0: received block 0 begins at item -1, in front of the memory"));
  EXPECT(exchange == NULL);
  hostless_neighborhood_free(n);
  hostless_neighborhood_free(NULL);
  return failures;
}

int main(void) {
  char direct[] = "direct", two[] = "two_step", three[] = "three_step";
  hostless_transport* t = NULL;
  EXPECT(hostless_open_single(&t) == HOSTLESS_OK);
  ring(t, direct);
  hostless_close(t);
  EXPECT(hostless_run_threads(3, ring, direct) == HOSTLESS_OK);
  EXPECT(hostless_run_threads(3, ring, two) == HOSTLESS_OK);
  EXPECT(hostless_run_threads(3, ring, three) == HOSTLESS_OK);
  EXPECT(hostless_run_threads(3, ring, NULL) == HOSTLESS_OK);
  EXPECT(hostless_run_threads(2, refuse, NULL) == HOSTLESS_OK);
  if (failures == 0) printf("C interface: neighbourhood collectives do what they say\n");
  return failures == 0 ? 0 : 1;
}
