#pragma once

/// HOSTLESS_HOST_DEVICE: functions that compile for the host and for CUDA and HIP kernels from the same text,
/// inlined in both. HOSTLESS_TEXT: the same for a method's text, which is long, and
/// HOSTLESS_INLINED for its parts: a kernel keeps its registers only without calls. HOSTLESS_LONG: as
/// HOSTLESS_HOST_DEVICE, for what is long and stands in many places. Whoever compiles kernels defines
/// HOSTLESS_GPU_COMPILER, and HOSTLESS_GPU_QUICK where that is only to see that they compile: what is long is
/// compiled once then, and called.
#if defined(HOSTLESS_GPU_COMPILER)
#define HOSTLESS_HOST_DEVICE __host__ __device__ inline __attribute__((always_inline))
#define HOSTLESS_TEXT __host__ __device__ inline __attribute__((always_inline))
#define HOSTLESS_INLINED __attribute__((always_inline))
#else
#define HOSTLESS_HOST_DEVICE inline __attribute__((always_inline))
#define HOSTLESS_TEXT
#define HOSTLESS_INLINED
#endif

#if defined(HOSTLESS_GPU_QUICK)
#define HOSTLESS_LONG __host__ __device__ __attribute__((noinline))
#else
#define HOSTLESS_LONG HOSTLESS_HOST_DEVICE
#endif
