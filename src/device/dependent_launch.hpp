#pragma once
// Kernels whose blocks may take their places before those of the kernel before them have ended (programmatic
// dependent launch, of GPUs of 9.0 and later): two kernels that follow each other are a quarter of a
// microsecond closer in a graph, more on a stream. Elsewhere they are launched like all others.
//
//   await_kernel_before()   first of all in each of them: everything before it on the stream is done and seen
//   let_next_kernel_come()  the next one's blocks, which take room, may come. Not in a kernel that still waits
//                           for another rank: that one may need the room

#include "device/memory.hpp"

namespace hostless::gpu {

/// is_dependent: the kernel begins with await_kernel_before, and the GPU is one of first_to_launch_early at least.
inline void launch_dependent(void const* kernel, int blocks, int threads, HOSTLESS_GPU(Stream_t) stream,
                             void** parameters, bool is_dependent) {
  dim3 const grid(static_cast<unsigned>(blocks)), block(static_cast<unsigned>(threads));
  check(is_dependent ? launch_early(kernel, grid, block, parameters, stream)
                     : HOSTLESS_GPU(LaunchKernel)(kernel, grid, block, parameters, 0, stream),
        "launching a kernel");
}

}  // namespace hostless::gpu
