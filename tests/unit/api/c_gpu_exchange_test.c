/* Exchanges between GPUs from C, played without one (tests/unit/exchange/fake_gpu): a ring of items on one rank and on three
 * threads, both directions, every way of queuing, errors. */
#include <stdio.h>
#include <string.h>

#include "expect.h"
#include "hostless/hostless.h"

enum { PER_RANK = 4, MOST_RANKS = 3, BYTES = 256 };

/* What is a GPU's: of each rank some, and some of another GPU. */
static unsigned char memory_of_gpu[MOST_RANKS][BYTES];
static unsigned char memory_of_another[BYTES];

static int lies_in(const void* address, const void* first, size_t bytes) {
  const unsigned char* const at = address;
  const unsigned char* const begin = first;
  return at >= begin && at < begin + bytes;
}
/* The played library holds a copy of the layers that this program exports too: no two definitions of one thing. */
const char* __asan_default_options(void);
const char* __asan_default_options(void) { return "detect_odr_violation=0"; }

int fake_gpu_of(const void* address);
int fake_gpu_of(const void* address) {
  if (lies_in(address, memory_of_gpu, sizeof memory_of_gpu)) return 0;
  return lies_in(address, memory_of_another, sizeof memory_of_another) ? 1 : -1;
}

static hostless_gpu_exchange_options by_the_host(void) {
  hostless_gpu_exchange_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.transport = "host";
  options.device = -1;
  return options;
}

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
  items.ranks_per_node = 2;
  return items;
}

/* The three ways in which an exchange comes about. */
static void queue_one(hostless_gpu_exchange* exchange, int turn) {
  if (turn % 2 == 0) {
    EXPECT(hostless_gpu_exchange_enqueue(exchange, NULL) == HOSTLESS_OK);
  } else {
    EXPECT(hostless_gpu_exchange_start(exchange, NULL) == HOSTLESS_OK);
    EXPECT(hostless_gpu_exchange_finish(exchange, NULL) == HOSTLESS_OK);
  }
}

static int go_round(hostless_transport* t, void* route) {
  int64_t owned[PER_RANK], ghosts[2];
  hostless_items items = ring(t, owned, ghosts);
  hostless_gpu_exchange_options const options = by_the_host();
  unsigned char* const mine = memory_of_gpu[hostless_rank(t)];
  double* const value = (double*)(void*)mine;
  unsigned char* const mark = mine + 128;
  hostless_field const fields[] = {{value, value + PER_RANK, sizeof(double)}, {mark, mark + 2 * PER_RANK, 2}};
  hostless_gpu_exchange* exchange = NULL;
  items.route = route;
  EXPECT(hostless_gpu_exchange_create(t, &items, fields, 2, &options, &exchange) == HOSTLESS_OK);
  EXPECT(hostless_gpu_exchange_device(exchange) == 0);
  /* Ranks share the GPU, but for one alone. */
  EXPECT(hostless_gpu_exchange_may_be_recorded(exchange) == (hostless_size(t) == 1));
  for (int turn = 1; exchange != NULL && turn <= 4; ++turn) {
    int complete = 0;
    for (int i = 0; i < PER_RANK; ++i) {
      value[i] = (double)(turn * owned[i]);
      mark[2 * i] = (unsigned char)owned[i];
      mark[2 * i + 1] = (unsigned char)turn;
    }
    queue_one(exchange, turn);
    EXPECT(hostless_gpu_exchange_wait(exchange) == HOSTLESS_OK);
    EXPECT(hostless_gpu_exchange_test(exchange, &complete) == HOSTLESS_OK && complete == 1);
    for (int g = 0; g < 2; ++g) {
      EXPECT(value[PER_RANK + g] == (double)(turn * ghosts[g]));
      EXPECT(mark[2 * (PER_RANK + g)] == (unsigned char)ghosts[g] && mark[2 * (PER_RANK + g) + 1] == turn);
    }
  }
  hostless_gpu_exchange_free(exchange);

  int32_t* const count = (int32_t*)(void*)mine;
  for (int i = 0; i < PER_RANK; ++i) count[i] = 1;
  count[PER_RANK] = 10;
  count[PER_RANK + 1] = 100;
  hostless_sum_field const sums[] = {{count + PER_RANK, count, HOSTLESS_I32, 1}};
  exchange = NULL;
  EXPECT(hostless_gpu_exchange_create_sum(t, &items, sums, 1, &options, &exchange) == HOSTLESS_OK);
  if (exchange != NULL) {
    queue_one(exchange, 0);
    EXPECT(hostless_gpu_exchange_wait(exchange) == HOSTLESS_OK);
    EXPECT(count[0] == 101 && count[1] == 1 && count[2] == 1 && count[3] == 11);
  }
  hostless_gpu_exchange_free(exchange);
  return failures;
}

static int said(const char* text) { return strstr(hostless_last_error(), text) != NULL; }

static int refuse(hostless_transport* t, void* user) {
  int64_t owned[PER_RANK], ghosts[2];
  double on_host[PER_RANK + 2] = {0};
  double* const value = (double*)(void*)memory_of_gpu[hostless_rank(t)];
  hostless_items items = ring(t, owned, ghosts);
  hostless_gpu_exchange_options options = by_the_host();
  hostless_field const field = {value, value + PER_RANK, sizeof(double)}, far = {on_host, on_host + PER_RANK, sizeof(double)};
  hostless_field const apart = {value, memory_of_another, sizeof(double)};
  hostless_gpu_exchange* exchange = (hostless_gpu_exchange*)on_host; /* whatever was there, nobody may free it */
  int complete = 0;
  (void)user;
  EXPECT(hostless_gpu_exchange_create(NULL, &items, &field, 1, &options, &exchange) == HOSTLESS_USAGE && exchange == NULL);
  EXPECT(hostless_gpu_exchange_create(t, NULL, &field, 1, &options, &exchange) == HOSTLESS_USAGE && said("items is NULL"));
  EXPECT(hostless_gpu_exchange_create(t, &items, NULL, 1, &options, &exchange) == HOSTLESS_USAGE && said("fields is NULL"));
  EXPECT(hostless_gpu_exchange_create(t, &items, &field, 1, &options, NULL) == HOSTLESS_USAGE && said("exchange is NULL"));
  options.struct_size = 3;
  EXPECT(hostless_gpu_exchange_create(t, &items, &field, 1, &options, &exchange) == HOSTLESS_USAGE && said("options.struct_size: 3, which"));
  options = by_the_host();
  options.transport = "pigeon";
  EXPECT(hostless_gpu_exchange_create(t, &items, &field, 1, &options, &exchange) == HOSTLESS_USAGE && said("'pigeon'"));
  options = by_the_host();
  options.device = -2;
  EXPECT(hostless_gpu_exchange_create(t, &items, &field, 1, &options, &exchange) == HOSTLESS_USAGE && said("options.device: -2"));
  options.device = 7;
  EXPECT(hostless_gpu_exchange_create(t, &items, &field, 1, &options, &exchange) == HOSTLESS_USAGE && said("options.device: 7 of 2 GPUs"));
  options = by_the_host();
  EXPECT(hostless_gpu_exchange_create(t, &items, &far, 1, &options, &exchange) == HOSTLESS_USAGE && said("fields[0].send: no memory of a GPU"));
  EXPECT(hostless_gpu_exchange_create(t, &items, &apart, 1, &options, &exchange) == HOSTLESS_USAGE && said("on GPU 1, where others are on GPU 0"));
  hostless_sum_field const sum = {on_host, value, HOSTLESS_F64, 1}, kind = {value, value, 9, 1};
  EXPECT(hostless_gpu_exchange_create_sum(t, &items, &sum, 1, &options, &exchange) == HOSTLESS_USAGE && said("no memory of a GPU"));
  EXPECT(hostless_gpu_exchange_create_sum(t, &items, &kind, 1, &options, &exchange) == HOSTLESS_USAGE && said("fields[0].element: 9 is none of"));
  EXPECT(exchange == NULL);
  EXPECT(hostless_gpu_exchange_enqueue(NULL, NULL) == HOSTLESS_USAGE && said("exchange is NULL"));
  EXPECT(hostless_gpu_exchange_start(NULL, NULL) == HOSTLESS_USAGE && hostless_gpu_exchange_finish(NULL, NULL) == HOSTLESS_USAGE);
  EXPECT(hostless_gpu_exchange_wait(NULL) == HOSTLESS_USAGE && hostless_gpu_exchange_test(NULL, &complete) == HOSTLESS_USAGE);
  EXPECT(hostless_gpu_exchange_device(NULL) == -1 && hostless_gpu_exchange_may_be_recorded(NULL) == 0);
  EXPECT(hostless_gpu_exchange_create(t, &items, &field, 1, &options, &exchange) == HOSTLESS_OK);
  EXPECT(hostless_gpu_exchange_test(exchange, NULL) == HOSTLESS_USAGE && said("complete is NULL"));
  hostless_gpu_exchange_free(exchange);
  hostless_gpu_exchange_free(NULL);
  return failures;
}

/* What all ranks must pass alike is compared before anything depends on it. */
static int disagree(hostless_transport* t, void* user) {
  int64_t owned[PER_RANK], ghosts[2];
  double* const value = (double*)(void*)memory_of_gpu[hostless_rank(t)];
  hostless_items items = ring(t, owned, ghosts);
  hostless_gpu_exchange_options options = by_the_host();
  hostless_field const field = {value, value + PER_RANK, sizeof(double)};
  hostless_sum_field const sum = {value + PER_RANK, value, HOSTLESS_F64, 1};
  hostless_gpu_exchange* exchange = NULL;
  hostless_exchange* on_host = NULL;
  int const other = hostless_rank(t) == 1;
  (void)user;
  EXPECT((other ? hostless_gpu_exchange_create_sum(t, &items, &sum, 1, &options, &exchange)
                : hostless_gpu_exchange_create(t, &items, &field, 1, &options, &exchange)) == HOSTLESS_USAGE);
  EXPECT(said("ranks 0 and 1 call hostless_gpu_exchange_create and hostless_gpu_exchange_create_sum"));
  EXPECT((other ? hostless_gpu_exchange_create(t, &items, &field, 1, &options, &exchange)
                : hostless_exchange_create(t, &items, &field, 1, &on_host)) == HOSTLESS_USAGE);
  EXPECT(said("ranks 0 and 1 call hostless_exchange_create and hostless_gpu_exchange_create"));
  if (other) options.transport = "peer";
  EXPECT(hostless_gpu_exchange_create(t, &items, &field, 1, &options, &exchange) == HOSTLESS_USAGE);
  EXPECT(said("GPU transport host on rank 0 and peer on rank 1"));
  return failures;
}

/* Rank 1 goes without a word: the other is told when it has waited for as long as it was told to. */
static int lose(hostless_transport* t, void* user) {
  int64_t owned[PER_RANK], ghosts[2];
  double* const value = (double*)(void*)memory_of_gpu[hostless_rank(t)];
  hostless_items items = ring(t, owned, ghosts);
  hostless_gpu_exchange_options const options = by_the_host();
  hostless_field const field = {value, value + PER_RANK, sizeof(double)};
  hostless_gpu_exchange* exchange = NULL;
  int complete = 1;
  (void)user;
  items.limit_s = 0.2;
  EXPECT(hostless_gpu_exchange_create(t, &items, &field, 1, &options, &exchange) == HOSTLESS_OK);
  if (exchange != NULL && hostless_rank(t) == 0) {
    EXPECT(hostless_gpu_exchange_enqueue(exchange, NULL) == HOSTLESS_PEER_LOST && said("a rank was lost"));
    EXPECT(hostless_gpu_exchange_wait(exchange) == HOSTLESS_PEER_LOST);
    EXPECT(hostless_gpu_exchange_test(exchange, &complete) == HOSTLESS_PEER_LOST && complete == 0);
    EXPECT(hostless_gpu_exchange_start(exchange, NULL) == HOSTLESS_PEER_LOST);
  }
  hostless_gpu_exchange_free(exchange);
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
  if (failures == 0) printf("C interface: exchanges between GPUs do what they say\n");
  return failures == 0 ? 0 : 1;
}
