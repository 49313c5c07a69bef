/* Exchanges of ghosts from C: a ring of items on one rank and on three threads, both directions, errors. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "expect.h"
#include "hostless/hostless.h"

enum { PER_RANK = 4 };

/* Each rank reads the last item of the one before it and the first of the one behind it. */
static hostless_items ring(hostless_transport* t, int64_t* owned, int64_t* ghosts) {
  int64_t const rank = hostless_rank(t), all = (int64_t)PER_RANK * hostless_size(t);
  hostless_items items;
  memset(&items, 0, sizeof items);
  for (int64_t i = 0; i < PER_RANK; ++i) owned[i] = PER_RANK * rank + i;
  ghosts[0] = (PER_RANK * rank + all - 1) % all;
  ghosts[1] = (PER_RANK * (rank + 1)) % all;
  items.struct_size = sizeof items;
  items.owned = owned;
  items.owned_count = PER_RANK;
  items.ghosts = ghosts;
  items.ghost_count = 2;
  return items;
}

static int said(const char* text) { return strstr(hostless_last_error(), text) != NULL; }

/* The value of an item is its number; the second field has two bytes an item. */
static int go_round(hostless_transport* t, void* route) {
  int64_t owned[PER_RANK], ghosts[2];
  hostless_items items = ring(t, owned, ghosts);
  items.route = route;
  items.ranks_per_node = 2;
  double value[PER_RANK], value_ghosts[2] = {-1, -1};
  unsigned char mark[2 * PER_RANK], mark_ghosts[4] = {0};
  hostless_field const fields[] = {{value, value_ghosts, sizeof(double)}, {mark, mark_ghosts, 2}};
  hostless_exchange* exchange = NULL;
  EXPECT(hostless_exchange_create(t, &items, fields, 2, &exchange) == HOSTLESS_OK);
  for (int turn = 1; exchange != NULL && turn <= 3; ++turn) {
    for (int i = 0; i < PER_RANK; ++i) {
      value[i] = (double)(turn * owned[i]);
      mark[2 * i] = (unsigned char)owned[i];
      mark[2 * i + 1] = (unsigned char)turn;
    }
    int complete = 0;
    EXPECT(hostless_exchange_start(exchange) == HOSTLESS_OK);
    EXPECT(hostless_exchange_test(exchange, &complete) == HOSTLESS_OK);
    EXPECT(hostless_exchange_wait(exchange) == HOSTLESS_OK);
    EXPECT(hostless_exchange_test(exchange, &complete) == HOSTLESS_OK && complete == 1);
    for (int g = 0; g < 2; ++g) {
      EXPECT(value_ghosts[g] == (double)(turn * ghosts[g]));
      EXPECT(mark_ghosts[2 * g] == (unsigned char)ghosts[g] && mark_ghosts[2 * g + 1] == turn);
    }
  }
  hostless_exchange_free(exchange);

  int32_t counts[PER_RANK] = {1, 1, 1, 1}, count_ghosts[2] = {10, 100};
  hostless_sum_field const sums[] = {{count_ghosts, counts, HOSTLESS_I32, 1}};
  exchange = NULL;
  EXPECT(hostless_exchange_create_sum(t, &items, sums, 1, &exchange) == HOSTLESS_OK);
  if (exchange != NULL) {
    EXPECT(hostless_exchange_start(exchange) == HOSTLESS_OK);
    EXPECT(hostless_exchange_wait(exchange) == HOSTLESS_OK);
    EXPECT(counts[0] == 101 && counts[1] == 1 && counts[2] == 1 && counts[3] == 11);
  }
  hostless_exchange_free(exchange);

  /* What is called out of order is refused on each rank that calls so, whatever has come by then. */
  exchange = NULL;
  EXPECT(hostless_exchange_create(t, &items, fields, 2, &exchange) == HOSTLESS_OK);
  for (int turn = 0; exchange != NULL && turn < 3; ++turn) {
    int complete = 0;
    EXPECT(hostless_exchange_wait(exchange) == HOSTLESS_USAGE && said("waited for that was not started"));
    EXPECT(hostless_exchange_start(exchange) == HOSTLESS_OK);
    EXPECT(hostless_exchange_start(exchange) == HOSTLESS_USAGE && said("while the last one is under way"));
    if (turn == 1) { /* a test that has found it complete ends it, too */
      while (!complete && hostless_exchange_test(exchange, &complete) == HOSTLESS_OK) continue;
      EXPECT(complete == 1 && hostless_exchange_start(exchange) == HOSTLESS_OK);
    }
    EXPECT(hostless_exchange_wait(exchange) == HOSTLESS_OK);
  }
  hostless_exchange_free(exchange);
  return failures;
}

static int refuse(hostless_transport* t, void* user) {
  int64_t owned[PER_RANK], ghosts[2];
  double memory[PER_RANK + 2] = {0};
  hostless_items items = ring(t, owned, ghosts);
  hostless_field const field = {memory, memory + PER_RANK, sizeof(double)};
  hostless_exchange* exchange = NULL;
  (void)user;
  items.route = "teleport";
  EXPECT(hostless_exchange_create(t, &items, &field, 1, &exchange) == HOSTLESS_USAGE && said("'teleport'"));
  items.route = NULL;
  items.struct_size = 8;
  EXPECT(hostless_exchange_create(t, &items, &field, 1, &exchange) == HOSTLESS_USAGE && said("struct_size"));
  items.struct_size = sizeof items;
  EXPECT(hostless_exchange_create(t, &items, NULL, 1, &exchange) == HOSTLESS_USAGE && said("fields is NULL"));
  EXPECT(hostless_exchange_create(t, &items, &field, 1, NULL) == HOSTLESS_USAGE && said("exchange is NULL"));
  EXPECT(hostless_exchange_create(t, NULL, &field, 1, &exchange) == HOSTLESS_USAGE && said("items is NULL"));
  EXPECT(hostless_exchange_create(NULL, &items, &field, 1, &exchange) == HOSTLESS_USAGE);
  items.limit_s = -1;
  EXPECT(hostless_exchange_create(t, &items, &field, 1, &exchange) == HOSTLESS_USAGE && said("limit_s"));
  items.limit_s = 60;
  ghosts[1] = 1000;
  EXPECT(hostless_exchange_create(t, &items, &field, 1, &exchange) == HOSTLESS_USAGE &&
         said("ghosts[1] is item 1000, which no rank owns"));
  ghosts[1] = 0;
  items.ghost_count = -1;
  EXPECT(hostless_exchange_create(t, &items, &field, 1, &exchange) == HOSTLESS_USAGE && said("items.ghost_count: -1"));
  items.ghost_count = 1;
  hostless_sum_field const sum = {memory, memory, 7, 1};
  EXPECT(hostless_exchange_create_sum(t, &items, &sum, 1, &exchange) == HOSTLESS_USAGE &&
         said("fields[0].element: 7 is none of HOSTLESS_F32"));
  EXPECT(exchange == NULL);
  hostless_field const none[] = {{NULL, memory, 8}, {memory, NULL, 8}};
  EXPECT(hostless_exchange_create(t, &items, none, 1, &exchange) == HOSTLESS_USAGE && said("fields[0].owned is NULL"));
  EXPECT(hostless_exchange_create(t, &items, none + 1, 1, &exchange) == HOSTLESS_USAGE && said("fields[0].ghosts is NULL"));
  hostless_sum_field const no_ghosts = {NULL, memory, HOSTLESS_F64, 1};
  EXPECT(hostless_exchange_create_sum(t, &items, &no_ghosts, 1, &exchange) == HOSTLESS_USAGE && said("fields[0].ghosts:"));
  hostless_field const same = {memory, memory, sizeof(double)};
  EXPECT(hostless_exchange_create(t, &items, &same, 1, &exchange) == HOSTLESS_USAGE && said("the 1 ghosts of fields[0] and the 4 owned items of fields[0] share bytes"));
  exchange = (hostless_exchange*)memory; /* whatever was there, nobody may free it */
  items.struct_size = 1;
  EXPECT(hostless_exchange_create(t, &items, &field, 1, &exchange) == HOSTLESS_USAGE && exchange == NULL);
  EXPECT(said("items.struct_size: 1, which"));
  items.struct_size = sizeof items;
  items.route = "auto";
  EXPECT(hostless_exchange_create(t, &items, &field, 1, &exchange) == HOSTLESS_OK);
  hostless_exchange_free(exchange);
  items.route = NULL;
  EXPECT(hostless_exchange_start(NULL) == HOSTLESS_USAGE && said("exchange is NULL"));
  EXPECT(hostless_exchange_create(t, &items, &field, 1, &exchange) == HOSTLESS_OK);
  EXPECT(hostless_exchange_test(exchange, NULL) == HOSTLESS_USAGE && said("complete is NULL"));
  hostless_exchange_free(exchange);
  return failures;
}

/* What all ranks must pass alike is compared before anything depends on it. */
static int disagree(hostless_transport* t, void* user) {
  hostless_close(t); /* one that is lent is left alone */
  int64_t owned[PER_RANK], ghosts[2];
  double memory[PER_RANK + 2] = {0};
  hostless_items items = ring(t, owned, ghosts);
  hostless_field const field = {memory, memory + PER_RANK, sizeof(double)};
  hostless_sum_field const sum = {memory + PER_RANK, memory, HOSTLESS_F64, 1};
  hostless_exchange* exchange = NULL;
  int const other = hostless_rank(t) == 1;
  (void)user;
  items.ranks_per_node = other ? 1 : 2;
  EXPECT(hostless_exchange_create(t, &items, &field, 1, &exchange) == HOSTLESS_USAGE);
  EXPECT(said("ranks 0 and 1 pass items.ranks_per_node 2 and 1"));
  items.ranks_per_node = 2;
  EXPECT((other ? hostless_exchange_create_sum(t, &items, &sum, 1, &exchange)
                : hostless_exchange_create(t, &items, &field, 1, &exchange)) == HOSTLESS_USAGE);
  EXPECT(said("ranks 0 and 1 call hostless_exchange_create and hostless_exchange_create_sum"));
  items.route = other ? "two_step" : NULL;
  EXPECT(hostless_exchange_create(t, &items, &field, 1, &exchange) == HOSTLESS_USAGE);
  EXPECT(said("ranks 0 and 1 pass items.route that of the nodes (NULL, auto) and two_step"));
  return failures;
}

/* Rank 1 goes without a word: the other waits for as long as it was told to. */
static int lose(hostless_transport* t, void* user) {
  int64_t owned[PER_RANK], ghosts[2];
  double memory[PER_RANK + 2] = {0};
  hostless_items items = ring(t, owned, ghosts);
  hostless_field const field = {memory, memory + PER_RANK, sizeof(double)};
  hostless_exchange* exchange = NULL;
  int complete = 1;
  (void)user;
  items.limit_s = 0.2;
  EXPECT(hostless_exchange_create(t, &items, &field, 1, &exchange) == HOSTLESS_OK);
  if (exchange != NULL && hostless_rank(t) == 0) {
    EXPECT(hostless_exchange_start(exchange) == HOSTLESS_OK);
    EXPECT(hostless_exchange_wait(exchange) == HOSTLESS_PEER_LOST && said("a rank was lost"));
    EXPECT(hostless_exchange_test(exchange, &complete) == HOSTLESS_PEER_LOST && complete == 0);
  }
  hostless_exchange_free(exchange);
  return failures;
}

/* The same with a loop of its own, in either direction. */
static int lose_in_a_loop(hostless_transport* t, void* sums) {
  int64_t owned[PER_RANK], ghosts[2];
  double memory[PER_RANK + 2] = {0};
  hostless_items items = ring(t, owned, ghosts);
  hostless_field const field = {memory, memory + PER_RANK, sizeof(double)};
  hostless_sum_field const sum = {memory + PER_RANK, memory, HOSTLESS_F64, 1};
  hostless_exchange* exchange = NULL;
  int complete = 0, code = HOSTLESS_OK;
  time_t const begin = time(NULL);
  items.limit_s = 0.2;
  EXPECT((sums != NULL ? hostless_exchange_create_sum(t, &items, &sum, 1, &exchange)
                       : hostless_exchange_create(t, &items, &field, 1, &exchange)) == HOSTLESS_OK);
  if (exchange != NULL && hostless_rank(t) == 0) {
    EXPECT(hostless_exchange_start(exchange) == HOSTLESS_OK);
    while (!complete && code == HOSTLESS_OK && time(NULL) - begin < 20) code = hostless_exchange_test(exchange, &complete);
    EXPECT(code == HOSTLESS_PEER_LOST && complete == 0 && said("a rank was lost"));
  }
  hostless_exchange_free(exchange);
  return failures;
}

int main(void) {
  char direct[] = "direct", two[] = "two_step";
  hostless_transport* t = NULL;
  EXPECT(hostless_open_single(&t) == HOSTLESS_OK);
  go_round(t, direct);
  refuse(t, NULL);
  hostless_close(t);
  EXPECT(hostless_run_threads(3, go_round, direct) == HOSTLESS_OK);
  EXPECT(hostless_run_threads(3, go_round, two) == HOSTLESS_OK);
  EXPECT(hostless_run_threads(3, go_round, NULL) == HOSTLESS_OK);
  EXPECT(hostless_run_threads(2, disagree, NULL) == HOSTLESS_OK);
  EXPECT(hostless_run_threads(2, lose, NULL) == HOSTLESS_OK);
  EXPECT(hostless_run_threads(2, lose_in_a_loop, NULL) == HOSTLESS_OK);
  EXPECT(hostless_run_threads(2, lose_in_a_loop, direct) == HOSTLESS_OK);
  if (failures == 0) printf("C interface: exchanges do what they say\n");
  return failures == 0 ? 0 : 1;
}
