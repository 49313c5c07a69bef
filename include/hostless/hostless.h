#ifndef HOSTLESS_H
#define HOSTLESS_H

/// The C interface: opaque handles, status codes, no exceptions. Everything the command line does is the C++
/// interface (hostless/hostless.hpp); this is a thin face over it for C, Fortran (iso_c_binding) and foreign
/// function calls.
///
/// Every function returns a hostless_code; on anything but HOSTLESS_OK, hostless_last_error() has the text,
/// and a handle that was asked for is NULL. Functions that take a transport, matrix or solver are collective
/// over its ranks unless said otherwise.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define HOSTLESS_C_BEGIN extern "C" {
#define HOSTLESS_C_END }
#else
#define HOSTLESS_C_BEGIN
#define HOSTLESS_C_END
#endif

HOSTLESS_C_BEGIN

#define HOSTLESS_VERSION_MAJOR 0
#define HOSTLESS_VERSION_MINOR 1
#define HOSTLESS_VERSION_PATCH 0

typedef enum hostless_code {
  HOSTLESS_OK = 0,
  HOSTLESS_USAGE = 2,
  HOSTLESS_BAD_INPUT = 3,
  HOSTLESS_ENVIRONMENT = 4,
  HOSTLESS_PEER_LOST = 5,
  HOSTLESS_ABORTED = 6
} hostless_code;

/* How a solve ended; see hostless/base/status.hpp. */
typedef enum hostless_status {
  HOSTLESS_STATUS_RUNNING = 0, /* none: hostless_solve has failed, and says why by its code */
  HOSTLESS_CONVERGED = 2,
  HOSTLESS_ITERATION_LIMIT = 3,
  HOSTLESS_INDEFINITE_MATRIX = 4,
  HOSTLESS_INDEFINITE_PRECONDITIONER = 5,
  HOSTLESS_NOT_FINITE = 6,
  HOSTLESS_BREAKDOWN = 7,
  HOSTLESS_STAGNATED = 8,
  HOSTLESS_DIVERGED = 9,
  HOSTLESS_STATUS_PEER_LOST = 10,
  HOSTLESS_STATUS_ABORTED = 11
} hostless_status;

typedef struct hostless_transport hostless_transport;
typedef struct hostless_matrix hostless_matrix;
typedef struct hostless_solver hostless_solver;

/* Called after every iteration; with gpus now and then, each rank about the iteration that it sees its GPU
 * at, so that ranks are told different ones: it may not call what all ranks must call together. A non-zero
 * return asks all ranks to stop. */
typedef int (*hostless_callback)(int64_t iteration, double residual_norm, void* user);

/* Words are those of the command line; NULL takes the default. Fill with hostless_default_options first. What
 * each is, may be and is by default stands in docs/options.md. Later versions add members at the end:
 * programs that were compiled without them go on to work. */
typedef struct hostless_options {
  size_t struct_size; /* sizeof(hostless_options), by hostless_default_options */
  const char* method; /* "cg", "single-reduction-cg", "pipelined-cg", "bicgstab", "minres", "cr" */
  const char* run;    /* "host", "persistent", "graph", "auto"; with gpus "stream" too, and not "host" */
  const char* preconditioner; /* "none", "jacobi", "block-jacobi", "chebyshev" */
  const char* reduction;      /* "ordered", "fast" */
  const char* partition;      /* "auto", "contiguous", "metis", "file:PATH" */
  const char* format;         /* "auto", "csr", "sell", "bsr" to "bsr6", "diagonals" with gpus, ... */
  const char* route;          /* "direct", "two_step", "three_step", "split", "leader", "auto" */
  int block_size;             /* 0: found in the matrix */
  int ranks_per_node;         /* 0: found by host name */
  int lanes;                  /* threads a rank, for "persistent" */
  double rtol, atol;
  int64_t max_iterations;     /* -1: 10 times the rows */
  double time_limit_s;        /* 0: none */
  int null_space_constant;    /* not 0: A 1 = 0 */
  hostless_callback callback; /* NULL: none */
  void* user;                 /* handed to callback */
  int gpus; /* of this machine, one for each of its ranks; 0: the processor. The same for matrix and solver */
  /* "auto", "peer", "nccl", "nvshmem", "mpi", "host", "peer+nccl", "peer+mpi", "peer+host" */
  const char* gpu_transport;
  double divergence_limit; /* HOSTLESS_DIVERGED beyond so many times the first residual; 0: the method's */
  /* All above, and nothing else, is in the struct of programs that have no hostless_set_defaults. */
  const char* matrix_precision;            /* "fp64", "fp32" */
  int chebyshev_degree;                    /* of preconditioner "chebyshev" */
  double chebyshev_ratio, chebyshev_upper; /* upper 0: estimated */
  const char* chebyshev_inner;             /* "none", "jacobi", "block-jacobi" */
  int check_interval;                      /* iterations between two looks at the gates */
  const char* checkpoint_file;             /* NULL: none; every checkpoint_every iterations */
  int64_t checkpoint_every;
  const char* resume_file; /* NULL: none */
  int check_symmetry;      /* 0: the matrix is not sampled for it */
  double symmetry_tolerance;
  const char* columns;      /* "auto", "16", "32" */
  int setup_threads;        /* 0: as many as the system lets a rank use */
  int slices;               /* 0: automatic */
  int row_lanes;            /* 1, 2, 4, 8, 16 or 32 */
  int64_t seed;             /* of METIS */
  int oversubscribe;        /* not 0: several ranks may share a GPU */
  int tune;                 /* 0: run "auto" does not measure on a GPU; refused without one */
  const char* profile_file; /* NULL: none; a Chrome trace of a run on a GPU */
  double longest_launch_s;  /* of a persistent kernel */
  const char* host_waits;   /* "when_needed", "every_iteration", "every_sum": of the run "stream" */
  int rhs_columns;          /* right-hand sides that a solve has at once, 1 to 8 */
} hostless_options;

typedef struct hostless_result {
  size_t struct_size;
  int status; /* hostless_status */
  int64_t iterations, restarts;
  double rhs_norm;
  double true_relative_residual; /* NaN when the solve ended before one was computed */
  double recurrence_relative_residual;
  double time_setup_s, time_solve_s;
  int64_t bytes_per_iteration;
  int64_t history_length; /* see hostless_history */
} hostless_result;

/* The text of this thread's last failure; never NULL, valid until its next call. */
const char* hostless_last_error(void);
const char* hostless_status_name(int status);
/* Writes struct_size bytes of defaults: sizeof(hostless_options), as the caller knows it. */
void hostless_set_defaults(hostless_options* options, size_t struct_size);
/* The function of this name writes the first struct that there was, for programs compiled with that. */
void hostless_default_options(hostless_options* options);
#define hostless_default_options(options) hostless_set_defaults((options), sizeof(hostless_options))

/* A transport of this thread alone: one rank. */
int hostless_open_single(hostless_transport** transport);
/* Over an MPI communicator given by its Fortran handle (MPI_Comm_c2f); `vendor` is "openmpi" or "mpich". The
 * program has called MPI_Init and finalises MPI after hostless_close. */
int hostless_open_mpi(const char* vendor, int fortran_communicator, hostless_transport** transport);
/* As above, but ranks of one node exchange through memory that they share. A node is a host name;
 * HOSTLESS_COMPOSITE_RANKS_PER_NODE declares smaller ones. Results have the bits of hostless_open_mpi. */
int hostless_open_composite(const char* vendor, int fortran_communicator, hostless_transport** transport);
/* A transport outlives what was made of it: free matrices, solvers and exchanges first. NULL, and one that
 * hostless_run_threads lends, are left alone. */
void hostless_close(hostless_transport* transport);
/* Runs body(transport, user) on `ranks` threads of this process; each gets a transport of its own, valid
 * during the call. A body that returns something else than 0 ends the others; its value is returned. */
int hostless_run_threads(int ranks, int (*body)(hostless_transport* transport, void* user), void* user);
/* -1 of NULL. */
int hostless_rank(const hostless_transport* transport);
int hostless_size(const hostless_transport* transport);

/* This rank's rows [first_row, first_row + rows): offsets [rows + 1] from 0, columns global and rising inside
 * a row. Nothing is kept of the arrays. */
int hostless_matrix_from_rows(hostless_transport* transport, int64_t first_row, int64_t rows,
                              const int64_t* offsets, const int64_t* columns, const double* values,
                              const hostless_options* options, hostless_matrix** matrix);
/* From a file: Matrix Market (plain or gz), PETSc binary or scipy's .npz. It must be symmetric, up to
 * the options' symmetry_tolerance, where their method needs it and check_symmetry is yes. */
int hostless_matrix_read(hostless_transport* transport, const char* path, const hostless_options* options,
                         hostless_matrix** matrix);
/* New values, same pattern, no new plan. The next hostless_solve refuses them (HOSTLESS_BAD_INPUT) where the method
 * needs a symmetric matrix and they are visibly none. */
int hostless_matrix_update_values(hostless_matrix* matrix, const int64_t* offsets, const int64_t* columns,
                                  const double* values);
/* Rows of the whole matrix, and this rank's range as b and x have it; -1 of NULL. Not collective. */
int64_t hostless_matrix_global_rows(const hostless_matrix* matrix);
int64_t hostless_matrix_first_row(const hostless_matrix* matrix);
int64_t hostless_matrix_last_row(const hostless_matrix* matrix);
void hostless_matrix_free(hostless_matrix* matrix);

/* Binds a method to a matrix, which must outlive it; then solve as often as needed. As of a matrix, options are the
 * same on all ranks, or HOSTLESS_USAGE on all: lanes, setup_threads, time_limit_s, check_interval, profile_file,
 * host_waits, longest_launch_s, oversubscribe and the callback may be a rank's own. */
int hostless_solver_create(const hostless_matrix* matrix, const hostless_options* options,
                           hostless_solver** solver);
/* b, x: this rank's rows, of options.rhs_columns columns one column after the other. x is the initial guess
 * and the solution. A solve that does not converge is HOSTLESS_OK with another status in `result`; of several
 * columns it is that of the first that did not converge, else of the one with the largest residual. Where only
 * the last checkpoint or the profile could not be written, HOSTLESS_ENVIRONMENT: x and `result` are there. After
 * any other error that came once `result` was looked at its status is HOSTLESS_STATUS_RUNNING. */
int hostless_solve(hostless_solver* solver, const double* b, double* x, hostless_result* result);
/* Residual norms of the last solve by iteration; at most `capacity`. Not collective. */
int hostless_history(const hostless_solver* solver, double* norms, int64_t capacity);
/* The same of one column of the last solve, 0 to options.rhs_columns - 1; times and bytes in `result` are
 * those of all columns. Not collective. */
int hostless_result_of_column(const hostless_solver* solver, int column, hostless_result* result);
int hostless_history_of_column(const hostless_solver* solver, int column, double* norms, int64_t capacity);
void hostless_solver_free(hostless_solver* solver);

/* Exchanges without a matrix: see hostless/exchange/exchange.hpp and docs/howto/exchange-ghosts.md. */
typedef struct hostless_exchange hostless_exchange;

/* What this rank owns and reads, by the global numbers of items; fill with 0 but for what is meant. */
typedef struct hostless_items {
  size_t struct_size; /* sizeof(hostless_items) */
  const int64_t* owned;
  int64_t owned_count;
  const int64_t* ghosts; /* in the order in which they are to lie, each once */
  int64_t ghost_count;
  /* Route and ranks a node are equal on all ranks. */
  const char* route;  /* "direct", "two_step", "three_step", "split", "leader"; NULL, "auto": three_step where
                         there are several nodes */
  int ranks_per_node; /* 0: found by host name */
  double limit_s;     /* a rank that is silent for so long is lost; 0: 60 s in the first wait, 10 s later */
} hostless_items;

/* One array that takes part: [owned_count] and [ghost_count] items of item_bytes bytes. Ghosts share no byte
 * with owned items, nor with the ghosts of another field. */
typedef struct hostless_field {
  const void* owned; /* only read */
  void* ghosts;
  size_t item_bytes;
} hostless_field;

typedef enum hostless_element {
  HOSTLESS_F32 = 0,
  HOSTLESS_F64 = 1,
  HOSTLESS_I32 = 2,
  HOSTLESS_I64 = 3
} hostless_element;

/* One array whose ghosts are added to the owners' items: items of `values` elements. */
typedef struct hostless_sum_field {
  const void* ghosts; /* only read */
  void* owned;
  int element; /* hostless_element */
  int values;
} hostless_sum_field;

/* Fills the ghosts of all fields with what their owners hold, in one message a neighbour. The fields' memory
 * is used until hostless_exchange_free, and not after it: over MPI, which may go on with a message after a
 * loss, items pass through memory of the library's. Nothing is kept of `items`. All ranks call the same of
 * this and the next function. */
int hostless_exchange_create(hostless_transport* transport, const hostless_items* items,
                             const hostless_field* fields, int field_count, hostless_exchange** exchange);
/* Adds the ghosts of all ranks to the owners' items, in the order of ranks. */
int hostless_exchange_create_sum(hostless_transport* transport, const hostless_items* items,
                                 const hostless_sum_field* fields, int field_count,
                                 hostless_exchange** exchange);
/* Starts an exchange; all ranks start equally often. Does not block. Where several are under way, all ranks
 * wait for them in one order, or test all of them in turn: an exchange moves on only when it is called.
 * HOSTLESS_USAGE, and nothing is started, where the last one was neither waited for nor found complete by
 * hostless_exchange_test, whether or not all of it has come. */
int hostless_exchange_start(hostless_exchange* exchange);
/* Moves it on; *complete is 1 when it is complete. Does not block. HOSTLESS_PEER_LOST when a rank has left,
 * died or been silent for the limit while this was called: a loop of it ends. */
int hostless_exchange_test(hostless_exchange* exchange, int* complete);
/* Waits for it: HOSTLESS_PEER_LOST when a rank has left, died or been silent for the limit; on the other
 * ranks then too, at the latest in the next exchange. Each start is waited for once at most, and need not be
 * where a test has found it complete: HOSTLESS_USAGE where none was started since the last wait. */
int hostless_exchange_wait(hostless_exchange* exchange);
void hostless_exchange_free(hostless_exchange* exchange);

/* The same over memory of GPUs, queued on streams: see hostless/exchange/gpu_exchange.hpp and
 * docs/howto/exchange-on-gpus.md. */
typedef struct hostless_gpu_exchange hostless_gpu_exchange;

/* Fill with 0 but for what is meant, and device. `transport` is equal on all ranks. */
typedef struct hostless_gpu_exchange_options {
  size_t struct_size;    /* sizeof(hostless_gpu_exchange_options) */
  const char* transport; /* as gpu_transport of hostless_options; NULL, "auto": peer */
  int device;            /* of a rank whose fields have no items; -1: the first GPU */
} hostless_gpu_exchange_options;

/* As hostless_exchange_create and _create_sum, of fields whose memory is one GPU's. options: NULL for all
 * defaults. The memory is used until hostless_gpu_exchange_free. */
int hostless_gpu_exchange_create(hostless_transport* transport, const hostless_items* items,
                                 const hostless_field* fields, int field_count,
                                 const hostless_gpu_exchange_options* options,
                                 hostless_gpu_exchange** exchange);
int hostless_gpu_exchange_create_sum(hostless_transport* transport, const hostless_items* items,
                                     const hostless_sum_field* fields, int field_count,
                                     const hostless_gpu_exchange_options* options,
                                     hostless_gpu_exchange** exchange);
/* Queues an exchange on a stream of the vendor's runtime (NULL: its default stream): after
 * what is there, before what is queued next. Does not block. All ranks queue equally many. May be recorded in
 * a graph where hostless_gpu_exchange_may_be_recorded says 1. HOSTLESS_PEER_LOST after a rank was lost. */
int hostless_gpu_exchange_enqueue(hostless_gpu_exchange* exchange, void* stream);
/* The same beside the stream: what is queued there between the two runs at the same time. */
int hostless_gpu_exchange_start(hostless_gpu_exchange* exchange, void* stream);
int hostless_gpu_exchange_finish(hostless_gpu_exchange* exchange, void* stream);
/* *complete is 1 when the last exchange that was queued (not recorded) is complete. Does not block. Where the
 * host carries ("mpi", "host") this or the next must be called while exchanges are under way. */
int hostless_gpu_exchange_test(hostless_gpu_exchange* exchange, int* complete);
/* Waits for that, at most for the limit: HOSTLESS_PEER_LOST when a rank is lost. */
int hostless_gpu_exchange_wait(hostless_gpu_exchange* exchange);
/* 1 where it may be part of a captured graph, else 0. Not collective. */
int hostless_gpu_exchange_may_be_recorded(const hostless_gpu_exchange* exchange);
/* The number of its GPU; -1 of NULL. Not collective. */
int hostless_gpu_exchange_device(const hostless_gpu_exchange* exchange);
/* Waits two seconds for what is under way, then takes it off the GPU. */
void hostless_gpu_exchange_free(hostless_gpu_exchange* exchange);

HOSTLESS_C_END

#endif
