#pragma once

/// The names that programs for MPI's proposed queues are written in (MPIS_..., by Bridges et al.), as a thin
/// layer over hostless/queue.h: such a program compiles unchanged, with this folder among its include paths,
/// and links hostless_mpis_openmpi, hostless_mpis_mpich or, without MPI, hostless_mpis_threads
/// (docs/howto/mpis-programs.md).
///
/// Every function returns MPIS_SUCCESS or another of the codes below; hostless_last_error()
/// (hostless/hostless.h) has the text. Nothing is thrown.

#include <stdint.h>

#include "../hostless.h"
#include "mpi.h"

HOSTLESS_C_BEGIN

typedef uintptr_t MPIS_Queue;
typedef uintptr_t MPIS_Request;

enum {
  MPIS_SUCCESS = 0,
  MPIS_NOT_READY = -1,             /* a start of what is not matched */
  MPIS_INVALID_REQUEST_STATE = -2, /* no request, or one in a state in which this may not be done */
  MPIS_UNSUPPORTED_BEHAVIOR = -3,  /* wildcards, types and memory that are not there, sides that do not fit */
  MPIS_PEER_LOST = -4              /* not among those of others: a rank is lost */
};
#define MPIS_QUEUE_NULL ((MPIS_Queue)0)
#define MPIS_REQUEST_NULL ((MPIS_Request)0)

/* THREAD: a thread of the library works for the queue, or calls of the library do. Its stream is not used.
 * GPU_MEM_OPS: a GPU's stream does, with nobody's processor between (queues of the type peer), where ranks are
 * threads and HOSTLESS_MPIS_GPUS says how many GPUs they are on; stream: the address of one of
 * the vendor's streams, or NULL for one of the queue's own, of high priority. Buffers are memory of that GPU, or
 * of MPIS_Alloc_mem. CXI is MPIS_UNSUPPORTED_BEHAVIOR. */
typedef enum MPIS_Queue_type { THREAD = 0, GPU_MEM_OPS = 3, CXI = 4 } MPIS_Queue_type;

int MPIS_Queue_init(MPIS_Queue* queue, MPIS_Queue_type type, void* stream);
int MPIS_Queue_free(MPIS_Queue* queue);
int MPIS_Queue_wait(MPIS_Queue queue);

/* The first request of a communicator other than MPI_COMM_WORLD is collective over it. Datatypes without
 * gaps, in the order in which they lie. peer may be MPI_PROC_NULL. */
int MPIS_Send_init(const void* buffer, MPI_Count count, MPI_Datatype datatype, int peer, int tag,
                   MPI_Comm comm, MPI_Info info, MPIS_Request* request);
int MPIS_Rsend_init(const void* buffer, MPI_Count count, MPI_Datatype datatype, int peer, int tag,
                    MPI_Comm comm, MPI_Info info, MPIS_Request* request);
int MPIS_Recv_init(void* buffer, MPI_Count count, MPI_Datatype datatype, int peer, int tag, MPI_Comm comm,
                   MPI_Info info, MPIS_Request* request);
int MPIS_Barrier_init(MPI_Comm comm, MPI_Info info, MPIS_Request* request);
/* Integers, floats and bytes; sum, product, minimum, maximum. */
int MPIS_Allreduce_init(const void* from, void* result, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                        MPI_Comm comm, MPI_Info info, MPIS_Request* request);

/* Statuses of matches have the source, the tag and the bytes that will come (MPI_Get_count). */
int MPIS_Match(MPIS_Request* request, MPI_Status* status);
int MPIS_Matchall(int count, MPIS_Request requests[], MPI_Status statuses[]);
int MPIS_Imatch(MPIS_Request* request, MPIS_Request* match);
int MPIS_Is_matched(MPIS_Request* request, int* matched);
/* As MPIS_Match: requests are of no queue until they are started; but it must be one. */
int MPIS_Queue_match(MPIS_Queue queue, MPIS_Request* request, MPI_Status* status);

/* Of matches alone. */
int MPIS_Wait(MPIS_Request* request, MPI_Status* status);
int MPIS_Waitall(int count, MPIS_Request requests[], MPI_Status statuses[]);

int MPIS_Enqueue_start(MPIS_Queue queue, MPIS_Request* request);
int MPIS_Enqueue_startall(MPIS_Queue queue, int count, MPIS_Request requests[]);
/* For all that was started on the queue. */
int MPIS_Enqueue_waitall(MPIS_Queue queue);

int MPIS_Request_free(MPIS_Request* request);
int MPIS_Request_freeall(int count, MPIS_Request requests[]);

/* Of the host, where `info` says nothing of mpi_memory_alloc_kinds, or says system: with HOSTLESS_MPIS_GPUS
 * pinned, for streams too. cuda:device or rocm:device: of the rank's GPU. */
int MPIS_Alloc_mem(MPI_Aint size, MPI_Info info, void** memory);
int MPIS_Free_mem(void* memory);

/* With MPI_THREAD_MULTIPLE where MPI has it: a thread works for the queues then. */
int MPIS_Init(int* argc, char*** argv);
int MPIS_Init_thread(int* argc, char*** argv, int required, int* provided);

HOSTLESS_C_END

#define MPI_Init MPIS_Init
#define MPI_Init_thread MPIS_Init_thread
