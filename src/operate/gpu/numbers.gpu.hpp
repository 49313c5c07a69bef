#pragma once
// Kernels whose threads each work on a number, a row or a block row, on the GPU in use or that of a caller's
// arrays.

#include <algorithm>
#include <cstdint>

#include "device/memory.hpp"
#include "device/on_device.hpp"
#include "hostless/operate/gpu_array.hpp"

namespace hostless::gpu {

constexpr int number_threads = 256;

/// use(k) for this thread's share of [0, count).
template <class Use>
__device__ __forceinline__ void each(std::int64_t count, Use const& use) {
  std::int64_t const step = static_cast<std::int64_t>(gridDim.x) * number_threads;
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * number_threads + threadIdx.x; k < count;
       k += step)
    use(k);
}

/// The values become the kernel's parameters; nothing waits for it.
template <class... Values>
void launch_each(char const* what, void const* kernel, std::int64_t count, Values... values) {
  constexpr std::int64_t most_blocks = 1 << 16;
  void* parameters[] = {&values...};
  auto const blocks = std::clamp<std::int64_t>((count + number_threads - 1) / number_threads, 1, most_blocks);
  check(HOSTLESS_GPU(LaunchKernel)(kernel, dim3(static_cast<unsigned>(blocks)), dim3(number_threads),
                                   parameters, 0, nullptr),
        what);
}
inline void settle(char const* what) {
  // bounded: copies and kernels that wait for nobody
  check(HOSTLESS_GPU(StreamSynchronize)(nullptr), what);
}

/// What is launched next, on the GPU in use, comes after what the caller has queued for the array.
void wait_for(GpuArray const& array);
/// Between two GPUs; done when it returns.
void copy_between(void* to, int to_device, void const* from, int from_device, std::size_t bytes);

}  // namespace hostless::gpu
