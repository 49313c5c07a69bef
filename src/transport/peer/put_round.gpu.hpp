#pragma once

#include "device/runtime.hpp"
#include "transport/peer/put_round.hpp"
#include "transport/stream/signals.hpp"

namespace hostless::gpu {

__device__ __forceinline__ int parity_of_exchange(std::uint64_t number) {
  return static_cast<int>(number & 1u);
}
/// The address of packed byte `at`, in the exchange that comes next.
__device__ __forceinline__ std::byte* put_address(PutRound const& round, std::int64_t at, int parity) {
  int k = 0;
  while (k + 1 < round.targets && at >= round.target[k].end) ++k;
  return round.target[k].to + (at - round.target[k].first) + parity * round.other_buffer;
}
/// By all blocks of a kernel at its end: the last one tells everybody, of a loss too.
__device__ __forceinline__ void signal_round(PutRound const& round) {
  __shared__ bool is_last;
  __syncthreads();
  if (threadIdx.x == 0) {
    fence_system();  // of what all threads of this block have stored
    is_last = atomicAdd(round.blocks_done, 1u) + 1 == gridDim.x;
    if (is_last) *round.blocks_done = 0;
  }
  __syncthreads();
  if (!is_last || static_cast<int>(threadIdx.x) >= round.signals) return;
  fence_system();
  std::uint64_t const number = *round.exchanges + 1, said = *round.lost != 0 ? poisoned_signal : number;
  auto* const to = reinterpret_cast<std::uint64_t volatile*>(round.signal[threadIdx.x] +
                                                             parity_of_exchange(number) * round.other_signal);
  *to = said;
}
/// Where the round that was awaited last lies.
__device__ __forceinline__ std::byte const* arrived_at(ArrivedRound const& round) {
  if (round.exchanges == nullptr) return round.first;
  return round.first + parity_of_exchange(*round.exchanges) * round.other_buffer;
}

}  // namespace hostless::gpu
