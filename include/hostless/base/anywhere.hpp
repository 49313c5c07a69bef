#pragma once

/// HOSTLESS_ANYWHERE: functions that compile for the host and for CUDA and HIP kernels from the same text,
/// inlined in both. HOSTLESS_TEXT: the same for a method's text, which is long, and
/// HOSTLESS_INLINED for its parts: a kernel keeps its registers only without calls. Whoever compiles kernels
/// defines HOSTLESS_GPU_COMPILER.
#if defined(HOSTLESS_GPU_COMPILER)
#define HOSTLESS_ANYWHERE __host__ __device__ inline __attribute__((always_inline))
#define HOSTLESS_TEXT __host__ __device__ inline __attribute__((always_inline))
#define HOSTLESS_INLINED __attribute__((always_inline))
#else
#define HOSTLESS_ANYWHERE inline __attribute__((always_inline))
#define HOSTLESS_TEXT
#define HOSTLESS_INLINED
#endif
