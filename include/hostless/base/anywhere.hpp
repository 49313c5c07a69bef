#pragma once

/// Functions that compile for the host and, later, for CUDA and HIP kernels from the same text.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define HOSTLESS_ANYWHERE __host__ __device__ __forceinline__
#else
#define HOSTLESS_ANYWHERE inline __attribute__((always_inline))
#endif
