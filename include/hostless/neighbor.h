#pragma once

/// Persistent neighbourhood collectives in C, with the argument lists of MPI: see
/// hostless/exchange/neighborhood.hpp and docs/howto/neighbour-collectives.md. Conventions are those of
/// hostless.h. What is made is a hostless_exchange, over memory of the host: hostless_exchange_start, _test,
/// _wait and _free.

#include "hostless/hostless.h"
#include "hostless/queue.h" /* hostless_datatype */

HOSTLESS_C_BEGIN

/* Who sends to whom, as MPI_Dist_graph_create_adjacent has it. */
typedef struct hostless_neighborhood hostless_neighborhood;

/* Fill with 0 but for what is meant; equal on all ranks. */
typedef struct hostless_neighborhood_options {
  size_t struct_size; /* sizeof(hostless_neighborhood_options) */
  const char* route;  /* as in hostless_items; NULL, "auto": by what each collective moves */
  int ranks_per_node; /* 0: found by host name */
  double limit_s;     /* as in hostless_items, of all collectives made from it */
} hostless_neighborhood_options;

/* sources [indegree] and destinations [outdegree] are ranks of the transport, the own one and several times
 * the same too: the k-th block that goes to a rank is the k-th that it has from this one. options: NULL for
 * all defaults. HOSTLESS_USAGE on all ranks where two ranks do not have their edges equally often. The
 * transport outlives it. */
int hostless_neighborhood_create(hostless_transport* transport, int indegree, const int sources[],
                                 int outdegree, const int destinations[],
                                 const hostless_neighborhood_options* options,
                                 hostless_neighborhood** neighborhood);
/* Exchanges made from it live on. */
void hostless_neighborhood_free(hostless_neighborhood* neighborhood);

/* Each is collective, and makes an exchange that may be started any number of times. Counts and displacements
 * are in items of a hostless_datatype; of other items count bytes. Displacements of NULL: one block behind
 * the other. Both sides of a block have equally many bytes, blocks that are received share none, and neither
 * do what is sent and what is received, each from its start to its last block: HOSTLESS_USAGE on all ranks,
 * with one text, before anything has moved. The buffers are used until hostless_exchange_free. */
int hostless_neighbor_allgather_init(const void* send, int send_count, int send_type, void* receive,
                                     int receive_count, int receive_type,
                                     const hostless_neighborhood* neighborhood, hostless_exchange** exchange);
int hostless_neighbor_allgatherv_init(const void* send, int send_count, int send_type, void* receive,
                                      const int receive_counts[], const int displacements[], int receive_type,
                                      const hostless_neighborhood* neighborhood,
                                      hostless_exchange** exchange);
int hostless_neighbor_alltoall_init(const void* send, int send_count, int send_type, void* receive,
                                    int receive_count, int receive_type,
                                    const hostless_neighborhood* neighborhood, hostless_exchange** exchange);
int hostless_neighbor_alltoallv_init(const void* send, const int send_counts[],
                                     const int send_displacements[], int send_type, void* receive,
                                     const int receive_counts[], const int receive_displacements[],
                                     int receive_type, const hostless_neighborhood* neighborhood,
                                     hostless_exchange** exchange);

HOSTLESS_C_END
