/* All forms of neighbourhood collectives, several times each, on every kind of topology; writes what each rank has
 * received, so that two runs can be compared: forms FILE [changing]. Counts of v-variants are those of a rank; with
 * `changing` there are calls, too, that have others each time. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 16, room = 1024, times = 5 };
static FILE* out;
static int rank, ranks, with_changes, changing;
static int send[room], receive[room], ones[most]; /* weights, as MPI_UNWEIGHTED puzzles compilers */

static void fill(int call) {
  for (int k = 0; k < room; ++k) {
    send[k] = (rank * 131 + call) * 1024 + k;
    receive[k] = -1;
  }
}
static void keep(const char* name, int call) {
  unsigned long long hash = 1469598103934665603ULL;
  for (int k = 0; k < room; ++k) hash = (hash ^ (unsigned)receive[k]) * 1099511628211ULL;
  fprintf(out, "%s %d %016llx\n", name, call, hash);
}

/* Items of the block from one rank to another: both sides know it. */
static int block(int from, int to, int call) {
  if (from == MPI_PROC_NULL || to == MPI_PROC_NULL) return 1;
  return (from * 3 + to * 5) % 4 + (changing ? call % 3 : 0);
}

static void equal_forms(MPI_Comm comm, MPI_Datatype type, int count, const char* name) {
  for (int call = 0; call < times; ++call) {
    fill(call);
    MPI_Neighbor_allgather(send, count, type, receive, count, type, comm);
    keep(name, call);
    fill(call + 50);
    MPI_Neighbor_alltoall(send, count, type, receive, count, type, comm);
    keep(name, call + 50);
  }
}

/* Types of whole addresses begin at MPI_BOTTOM. */
static void absolute_forms(MPI_Comm comm, const char* name) {
  int count = 5;
  MPI_Aint from, to;
  MPI_Datatype out, in;
  MPI_Get_address(send, &from);
  MPI_Get_address(receive, &to);
  MPI_Type_create_hindexed(1, &count, &from, MPI_INT, &out);
  MPI_Type_create_hindexed(1, &count, &to, MPI_INT, &in);
  MPI_Type_commit(&out);
  MPI_Type_commit(&in);
  for (int call = 0; call < times; ++call) {
    fill(call + 20);
    MPI_Neighbor_allgather(MPI_BOTTOM, 1, out, MPI_BOTTOM, 1, in, comm);
    keep(name, call + 300);
  }
  MPI_Type_free(&out);
  MPI_Type_free(&in);
}

static void listed_forms(MPI_Comm comm, int in, const int* sources, int to, const int* destinations,
                         const char* name) {
  int out_counts[most + 1], out_places[most + 1], in_counts[most + 1], in_places[most + 1];
  for (int call = 0; call < times; ++call) {
    int next = 0;
    for (int k = 0; k < to; ++k) {
      out_counts[k] = block(rank, destinations[k], call);
      out_places[k] = next;
      next += out_counts[k] + 1;
    }
    next = 2;
    for (int k = in - 1; k >= 0; --k) { /* the last comes first */
      in_counts[k] = block(sources[k], rank, call);
      in_places[k] = next;
      next += in_counts[k] + 1;
    }
    fill(call);
    MPI_Neighbor_alltoallv(send, out_counts, out_places, MPI_INT, receive, in_counts, in_places, MPI_INT,
                           comm);
    keep(name, call + 100);
    for (int k = 0; k < in; ++k) in_counts[k] = block(sources[k], 1000, call);
    next = 2;
    for (int k = in - 1; k >= 0; --k) {
      in_places[k] = next;
      next += in_counts[k] + 1;
    }
    fill(call + 70);
    MPI_Neighbor_allgatherv(send, block(rank, 1000, call), MPI_INT, receive, in_counts, in_places, MPI_INT,
                            comm);
    keep(name, call + 150);
  }
}

/* Nothing of these is carried; all must be as without. */
static void other_forms(MPI_Comm comm, const char* name) {
  int ones[most + 1];
  MPI_Aint from[most + 1], into[most + 1];
  MPI_Datatype types[most + 1];
  for (int k = 0; k <= most; ++k) {
    ones[k] = 1;
    from[k] = into[k] = (MPI_Aint)sizeof(int) * 2 * k;
    types[k] = MPI_INT;
  }
  fill(7);
  MPI_Neighbor_alltoallw(send, ones, from, types, receive, ones, into, types, comm);
  keep(name, 200);
  MPI_Request request;
  fill(8);
  MPI_Ineighbor_alltoall(send, 2, MPI_INT, receive, 2, MPI_INT, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  keep(name, 201);
  fill(9);
  MPI_Ineighbor_allgather(send, 3, MPI_INT, receive, 3, MPI_INT, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  keep(name, 202);
#if MPI_VERSION >= 4
  MPI_Neighbor_alltoall_init(send, 2, MPI_INT, receive, 2, MPI_INT, comm, MPI_INFO_NULL, &request);
  for (int call = 0; call < 3; ++call) {
    fill(10 + call);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    keep(name, 203 + call);
  }
  MPI_Request_free(&request);
  fill(20);
  MPI_Neighbor_allgather_c(send, 5, MPI_INT, receive, 5, MPI_INT, comm);
  keep(name, 210);
#endif
}

static void all_forms(MPI_Comm comm, int in, const int* sources, int to, const int* destinations,
                      const char* name) {
  MPI_Datatype column, pair;
  MPI_Type_vector(3, 1, 4, MPI_INT, &column); /* with gaps */
  MPI_Type_create_resized(column, 0, 16 * sizeof(int), &pair);
  MPI_Type_commit(&pair);
  equal_forms(comm, MPI_INT, 5, name);
  equal_forms(comm, pair, 2, name);
  equal_forms(comm, MPI_INT, 0, name);
  absolute_forms(comm, name);
  for (changing = 0; changing <= with_changes; ++changing)
    listed_forms(comm, in, sources, to, destinations, name);
  other_forms(comm, name);
  MPI_Type_free(&column);
  MPI_Type_free(&pair);
}

/* Each rank to its next two, itself among them where they are two; where each edge is there twice, the last rank has none
 * of them. */
static void on_a_graph(int twice) {
  int active = twice && ranks > 1 ? ranks - 1 : ranks, sources[most], destinations[most], degree = 0;
  if (rank < active)
    for (int step = 1; step <= 2; ++step)
      for (int again = 0; again <= twice; ++again) {
        destinations[degree] = (rank + step) % active;
        sources[degree++] = (rank - step + 2 * active) % active;
      }
  MPI_Comm comm;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, sources, ones, degree, destinations, ones,
                                 MPI_INFO_NULL, 0, &comm);
  all_forms(comm, degree, sources, degree, destinations, twice ? "twice" : "graph");
  MPI_Comm_free(&comm);
}

static void on_a_grid(int periodic) {
  int sizes[2] = {0, 0}, around[2] = {periodic, periodic}, list[4];
  MPI_Comm comm;
  MPI_Dims_create(ranks, 2, sizes);
  MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, around, 0, &comm);
  for (int d = 0; d < 2; ++d) MPI_Cart_shift(comm, d, 1, list + 2 * d, list + 2 * d + 1);
  equal_forms(comm, MPI_DOUBLE, 3, periodic ? "torus" : "grid");
  for (changing = 0; changing <= with_changes; ++changing)
    listed_forms(comm, 4, list, 4, list, periodic ? "torus" : "grid");
  MPI_Comm_free(&comm);
}

/* Blocks of who sends to nobody, or receives from nobody, are not there; MPICH refuses that. */
#ifdef OPEN_MPI
static int* const absent = NULL;
#else
static int* const absent = ones;
#endif
static void on_a_chain(void) {
  int left = rank - 1, right = rank + 1, in = rank > 0, to = rank + 1 < ranks;
  MPI_Comm comm;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, &left, ones, to, &right, ones, MPI_INFO_NULL, 0, &comm);
  for (int call = 0; call < times; ++call) {
    fill(call);
    MPI_Neighbor_allgather(to ? send : absent, 6, MPI_INT, in ? receive : absent, 6, MPI_INT, comm);
    keep("chain", call);
    MPI_Neighbor_alltoall(to ? send : absent, 6, MPI_INT, in ? receive : absent, 6, MPI_INT, comm);
    keep("chain", call + 50);
  }
  MPI_Comm_free(&comm);
}

static void on_itself(void) {
  int zero = 0;
  MPI_Comm comm;
  MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 1, &zero, ones, 1, &zero, ones, MPI_INFO_NULL, 0, &comm);
  equal_forms(comm, MPI_INT, 4, "self");
  MPI_Comm_free(&comm);
}

/* The error handler of the communicator has the word, as without. */
static void wrong_calls(void) {
  int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks, codes[3];
  MPI_Comm comm;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, ones, 1, &right, ones, MPI_INFO_NULL, 0, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  codes[0] = MPI_Neighbor_allgather(send, -1, MPI_INT, receive, 1, MPI_INT, comm);
  codes[1] = MPI_Neighbor_alltoall(send, 1, MPI_DATATYPE_NULL, receive, 1, MPI_INT, comm);
  codes[2] = MPI_Neighbor_allgather(send, 1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_WORLD);
  for (int k = 0; k < 3; ++k) {
    int kind = MPI_SUCCESS;
    MPI_Error_class(codes[k], &kind);
    fprintf(out, "wrong %d %d\n", k, kind);
  }
  MPI_Comm_free(&comm);
}

int main(int count, char** words) {
  char name[512];
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  with_changes = count > 2 && strcmp(words[2], "changing") == 0;
  snprintf(name, sizeof name, "%s.%d", count > 1 ? words[1] : "forms", rank);
  out = fopen(name, "w");
  if (out == NULL) return MPI_Abort(MPI_COMM_WORLD, 1);
  on_a_graph(0);
  on_a_graph(1);
  on_a_grid(0);
  on_a_grid(1);
  on_a_chain();
  on_itself();
  wrong_calls();
  fclose(out);
  printf("kept forms;\n");
  MPI_Finalize();
  return 0;
}
