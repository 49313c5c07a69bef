#pragma once

/// As much of MPI as a program around MPIS_... may need to run where there is none: its ranks are threads of
/// one process (HOSTLESS_MPIS_RANKS of them, 2 unless set). With HOSTLESS_MPIS_GPUS=N, streams of N GPUs do the work of
/// their queues. So its global variables are those of all ranks,
/// and `main` takes (int, char**). Link hostless_mpis_threads, which calls it.

#include <stddef.h>
#include <stdint.h>

#include "../../hostless.h"

HOSTLESS_C_BEGIN

typedef int MPI_Comm;
typedef int MPI_Datatype; /* its size times 16, and its kind */
typedef int MPI_Op;
typedef int MPI_Info;
typedef int64_t MPI_Count;
typedef ptrdiff_t MPI_Aint;
typedef struct MPI_Status {
  int MPI_SOURCE, MPI_TAG, MPI_ERROR;
  size_t bytes;
} MPI_Status;

enum {
  MPI_SUCCESS = 0,
  MPI_ERR_OTHER = 15,
  MPI_PROC_NULL = -2,
  MPI_ANY_SOURCE = -1,
  MPI_ANY_TAG = -1,
  MPI_UNDEFINED = -32766
};
enum { MPI_THREAD_SINGLE = 0, MPI_THREAD_FUNNELED = 1, MPI_THREAD_SERIALIZED = 2, MPI_THREAD_MULTIPLE = 3 };
enum { MPI_COMM_NULL = 0, MPI_COMM_WORLD = 1, MPI_INFO_NULL = 0 };
enum { MPI_SUM = 0, MPI_PROD = 1, MPI_MIN = 2, MPI_MAX = 3 };
enum {
  MPI_BYTE = 1 * 16 + 4,
  MPI_CHAR = 1 * 16 + 5, /* is sent, and not reduced */
  MPI_INT = 4 * 16 + 2,
  MPI_FLOAT = 4 * 16 + 0,
  MPI_DOUBLE = 8 * 16 + 1,
  MPI_LONG = 8 * 16 + 3,
  MPI_INT32_T = MPI_INT,
  MPI_INT64_T = MPI_LONG
};
#define MPI_IN_PLACE ((void*)-1)
#define MPI_STATUS_IGNORE ((MPI_Status*)0)
#define MPI_STATUSES_IGNORE ((MPI_Status*)0)

int MPI_Init(int* argc, char*** argv);
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided);
int MPI_Finalize(void);
int MPI_Comm_rank(MPI_Comm comm, int* rank);
int MPI_Comm_size(MPI_Comm comm, int* size);
int MPI_Barrier(MPI_Comm comm);  // bounded: Group::barrier
int MPI_Abort(MPI_Comm comm, int code);
double MPI_Wtime(void);
/* Of the status of a match. */
int MPI_Get_count(const MPI_Status* status, MPI_Datatype datatype, int* count);
int MPI_Type_size(MPI_Datatype datatype, int* size);
int MPI_Info_create(MPI_Info* info);
int MPI_Info_set(MPI_Info info, const char* key, const char* value);
int MPI_Info_get(MPI_Info info, const char* key, int most, char* value, int* is_there);
int MPI_Info_free(MPI_Info* info);

int hostless_mpis_main(int argc, char** argv);

HOSTLESS_C_END

/* The program's main has another name for linkers alone: to compilers it stays main, which may end without a
 * return. */
#ifndef HOSTLESS_MPIS_LIBRARY
int main(int argc, char** argv) __asm__("hostless_mpis_main");
#endif
