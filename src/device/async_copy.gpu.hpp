#pragma once
// Copies from memory into a block's shared memory that a thread queues and goes on. Where the compiler knows
// none they are loads and stores.

#include "device/runtime.hpp"

namespace hostless::gpu {

/// Of 4, 8 or 16 bytes, aligned to as many.
template <int bytes>
__device__ __forceinline__ void copy_async(void* to_shared, void const* from) {
#if defined(__CUDA_ARCH__)
  auto const to = static_cast<std::uint32_t>(__cvta_generic_to_shared(to_shared));
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(bytes) : "memory");
#else
  __builtin_memcpy(to_shared, from, bytes);
#endif
}

/// What this thread has queued since the last call is a group.
__device__ __forceinline__ void end_copies() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Until of this thread's groups all but the last `left` are there, for itself.
template <int left>
__device__ __forceinline__ void await_copies() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
#endif
}

}  // namespace hostless::gpu
