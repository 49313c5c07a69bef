#pragma once

#include "device/runtime.hpp"
#include "transport/peer/put_level.hpp"
#include "transport/stream/signals.hpp"

namespace hostless::gpu {

__device__ __forceinline__ int parity_of_exchange(std::uint64_t number) {
  return static_cast<int>(number & 1u);
}
/// The address of packed byte `at`, in the exchange that comes next.
__device__ __forceinline__ std::byte* put_address(PutLevel const& level, std::int64_t at, int parity) {
  int k = 0;
  while (k + 1 < level.targets && at >= level.target[k].end) ++k;
  return level.target[k].to + (at - level.target[k].first) + parity * level.other_buffer;
}
/// By all blocks of a kernel at its end: the last one tells everybody, of a loss too.
__device__ __forceinline__ void signal_level(PutLevel const& level) {
  __shared__ bool is_last;
  __syncthreads();
  if (threadIdx.x == 0) {
    fence_system();  // of what all threads of this block have stored
    is_last = atomicAdd(level.blocks_done, 1u) + 1 == gridDim.x;
    if (is_last) *level.blocks_done = 0;
  }
  __syncthreads();
  if (!is_last || static_cast<int>(threadIdx.x) >= level.signals) return;
  fence_system();
  std::uint64_t const number = *level.exchanges + 1, said = *level.lost != 0 ? poisoned_signal : number;
  auto* const to = reinterpret_cast<std::uint64_t volatile*>(level.signal[threadIdx.x] +
                                                             parity_of_exchange(number) * level.other_signal);
  *to = said;
}
/// Where the level that was awaited last lies.
__device__ __forceinline__ std::byte const* arrived_at(ArrivedLevel const& level) {
  if (level.exchanges == nullptr) return level.first;
  return level.first + parity_of_exchange(*level.exchanges) * level.other_buffer;
}

}  // namespace hostless::gpu
