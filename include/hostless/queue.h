#pragma once

/// Messages and collectives that a queue's work starts and waits for, in C: see hostless/queue/queue.hpp and
/// docs/howto/queue.md. Conventions are those of hostless.h, and nothing here is collective: matching is
/// between the ranks of a message. A call about several requests is accepted or refused as a whole; what is
/// refused has enqueued nothing. Calls about one request or queue come from one thread at a time.

#include "hostless/hostless.h"

HOSTLESS_C_BEGIN

/* Beside those of hostless_code: why a call was refused. */
typedef enum hostless_refusal {
  HOSTLESS_NO_REQUEST = 16,     /* NULL, freed, or no handle of this interface */
  HOSTLESS_NOT_PERSISTENT = 17, /* the request of a match where a persistent one is wanted */
  HOSTLESS_ALREADY_MATCHED = 18,
  HOSTLESS_NOT_MATCHED = 19,
  HOSTLESS_ALREADY_STARTED = 20, /* without a wait since */
  HOSTLESS_NOT_STARTED = 21,
  HOSTLESS_OTHER_QUEUE = 22,
  HOSTLESS_IN_USE =
      23, /* freed, cancelled or waited for by the host while it is enqueued; called in a function */
  HOSTLESS_WILDCARD = 24,
  HOSTLESS_MISMATCH = 25, /* its two sides do not fit */
  HOSTLESS_UNSUPPORTED = 26,
  HOSTLESS_TWICE = 27,
  HOSTLESS_TOO_MANY = 28 /* started messages (ofi) */
} hostless_refusal;

typedef enum hostless_datatype {
  HOSTLESS_DATA_F32 = 0,
  HOSTLESS_DATA_F64 = 1,
  HOSTLESS_DATA_I32 = 2,
  HOSTLESS_DATA_I64 = 3,
  HOSTLESS_DATA_BYTE = 4
} hostless_datatype;

/* Of an all-reduce. In the order of ranks: equal bits on all. Of numbers with a NaN the minimum and maximum are NaN. */
typedef enum hostless_reduction {
  HOSTLESS_SUM = 0,
  HOSTLESS_PRODUCT = 1,
  HOSTLESS_MINIMUM = 2,
  HOSTLESS_MAXIMUM = 3
} hostless_reduction;

enum { HOSTLESS_ANY_RANK = -1, HOSTLESS_ANY_TAG = -1 }; /* refused: for those who look for them */

typedef struct hostless_queue hostless_queue;
typedef struct hostless_request hostless_request;

typedef struct hostless_request_status {
  size_t struct_size; /* written: that of the library, sizeof(hostless_request_status) in its header */
  int source;         /* the peer; -1 of a collective */
  int tag;
  size_t bytes;    /* of the message, at most those of the buffer */
  uint64_t starts; /* how often it has been complete */
  int lost;        /* 1: its peer is lost, it will never be complete again */
} hostless_request_status;

/* type: "auto", "threads", "peer", "mpi", "nccl", "ofi". stream: a GPU's (auto, peer, nccl), which does all of the work and may record it (hostless/queue/queue.hpp has the rules), or
 * NULL: work of the host, done in order by a thread or, over an MPI that may not be called by one
 * (HOSTLESS_QUEUE_PROGRESS=thread and MPI_THREAD_MULTIPLE), inside calls of this interface. */
int hostless_queue_init(hostless_queue** queue, const char* type, void* stream);
/* HOSTLESS_IN_USE while there is work, or a start without a wait. *queue is NULL afterwards. */
int hostless_queue_free(hostless_queue** queue);
/* Blocks until all work is done. HOSTLESS_PEER_LOST when a wait ended by a loss or by the limit,
 * HOSTLESS_USAGE when by a ready send whose promise was broken, HOSTLESS_ENVIRONMENT when memory ran out; the work behind it is done all the same, but
 * for starts and waits. */
int hostless_queue_wait(hostless_queue* queue);
/* *done is 1 when there is no work. Never blocks. */
int hostless_queue_test(hostless_queue* queue, int* done);
/* How long a wait on it may take; 600 s (HOSTLESS_DEADLINE_SCALE multiplies them) unless set. */
int hostless_queue_set_limit(hostless_queue* queue, double seconds);

/* Requests made over the transport from here on are those of streams of that GPU, queues of the type peer;
 * their buffers are in its memory or in pinned memory of the host. Once, before the first request of this
 * rank, between ranks that are threads of one process, all of which call it before anybody's first wait:
 * memory, kernels and paths between GPUs are got ready here. HOSTLESS_ENVIRONMENT where no GPU can be used,
 * HOSTLESS_UNSUPPORTED between ranks that are processes. */
int hostless_requests_on_gpu(hostless_transport* transport, int gpu);
/* The same for queues of the type nccl: NCCL moves what they start, in groups. Collective, once, before the first
 * request, and each rank has a GPU of its own. All that two ranks have between them is matched by one call on
 * either side and waited for as a whole: HOSTLESS_UNSUPPORTED otherwise, and where two ranks have one GPU.
 * HOSTLESS_ENVIRONMENT where NCCL is missing or does not connect them. */
int hostless_requests_over_nccl(hostless_transport* transport, int gpu);
/* Requests made over the transport from here on go by libfabric, for queues of the type ofi or auto.
 * Collective, once, before the first request, between ranks that are processes. HOSTLESS_ENVIRONMENT where
 * libfabric or its plugin is missing, HOSTLESS_UNSUPPORTED between ranks that are threads. */
int hostless_requests_over_fabric(hostless_transport* transport);
/* How long a match of requests over the transport may take; 600 s (HOSTLESS_DEADLINE_SCALE multiplies them)
 * unless set. After the three functions above. */
int hostless_requests_set_limit(hostless_transport* transport, double seconds);
/* Persistent requests between this rank of the transport and `peer`; buffers are host memory but for
 * hostless_requests_on_gpu and _over_nccl, used until the request is freed. HOSTLESS_WILDCARD for any peer or tag. */
int hostless_send_init(const void* buffer, size_t count, int datatype, int peer, int tag,
                       hostless_transport* transport, hostless_request** request);
/* The caller promises that the receiver's start has been reached when this one is. */
int hostless_rsend_init(const void* buffer, size_t count, int datatype, int peer, int tag,
                        hostless_transport* transport, hostless_request** request);
int hostless_recv_init(void* buffer, size_t count, int datatype, int peer, int tag,
                       hostless_transport* transport, hostless_request** request);
int hostless_barrier_init(hostless_transport* transport, hostless_request** request);
/* from may be result. */
int hostless_allreduce_init(const void* from, void* result, size_t count, int datatype, int reduction,
                            hostless_transport* transport, hostless_request** request);
int hostless_broadcast_init(void* buffer, size_t count, int datatype, int root, hostless_transport* transport,
                            hostless_request** request);

/* By (transport, peer, tag) in the order of calls and of the array, once and for good; collectives in their
 * order. Blocks until all are matched: HOSTLESS_PEER_LOST, HOSTLESS_MISMATCH; then those without their other
 * side can only be freed. */
int hostless_match(hostless_request* request);
int hostless_matchall(size_t count, hostless_request* const requests[]);
/* One request for all of them, which is waited for, then freed. */
int hostless_imatch(hostless_request* request, hostless_request** match);
int hostless_imatchall(size_t count, hostless_request* const requests[], hostless_request** match);
int hostless_is_matched(hostless_request* request, int* matched);

/* Of a match alone: persistent requests are waited for on their queue, and HOSTLESS_IN_USE. */
int hostless_request_wait(hostless_request* request);
int hostless_request_test(hostless_request* request, int* done);
/* HOSTLESS_IN_USE, always. */
int hostless_request_cancel(hostless_request* request);
/* HOSTLESS_IN_USE while it is started, a wait for it was not reached, or it is being matched with a rank that
 * has not left. *request is NULL afterwards. */
int hostless_request_free(hostless_request** request);
/* Of the last start whose wait was reached; see hostless_queue_wait. */
int hostless_request_get_status(hostless_request* request, hostless_request_status* status);

int hostless_enqueue_start(hostless_queue* queue, hostless_request* request);
int hostless_enqueue_startall(hostless_queue* queue, size_t count, hostless_request* const requests[]);
int hostless_enqueue_wait(hostless_queue* queue, hostless_request* request);
int hostless_enqueue_waitall(hostless_queue* queue, size_t count, hostless_request* const requests[]);
/* Starts `starts`, then waits for `waits`: requests that this call starts, or that were started on this queue before.
 * Accepted or refused as a whole. On a stream (type peer) one launch less than by two calls: one where each has at
 * most 24 messages. */
int hostless_enqueue_start_and_wait(hostless_queue* queue, size_t start_count,
                                    hostless_request* const starts[], size_t wait_count,
                                    hostless_request* const waits[]);
/* All that was started on this queue and not yet waited for. */
int hostless_enqueue_wait_started(hostless_queue* queue);
/* Calls work(user) when the queue comes to it; it may not call this interface: calls about queues and matches
 * inside it are HOSTLESS_IN_USE. */
int hostless_enqueue_function(hostless_queue* queue, void (*work)(void* user), void* user);

HOSTLESS_C_END
