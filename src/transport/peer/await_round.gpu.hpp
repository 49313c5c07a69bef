#pragma once
// Kernels that wait for a round of messages which others store: one block alone, or every block of what reads
// it. A wait ends by the signals, by poison, by the host or by its deadline.

#include "transport/peer/put_round.gpu.hpp"
#include "transport/stream/await.gpu.hpp"

namespace hostless::gpu {

/// Number `expected`, after which the buffer's last was `expected - 2`, or none.
__device__ __forceinline__ bool await_number(AwaitedRound const& call, std::uint64_t const* signal,
                                             std::uint64_t expected) {
  std::uint64_t const begin = cycles(), before = expected > 2 ? expected - 2 : 0;
  for (std::uint32_t polls = 1;; ++polls) {
    std::uint64_t const found = load_signal(signal);
    if (found == expected) return true;
    if (found != before) return false;  // poisoned, or a rank that is not where it should be
    if (polls % 1024 == 0 && (load_host(call.ended) != 0 || cycles() - begin > call.deadline_cycles))
      return false;
  }
}

/// By all threads of a block, a thread for each rank: exchange `expected`. False: it never came, and no later
/// kernel waits.
__device__ __forceinline__ bool await_round(AwaitedRound const& call, std::uint64_t expected) {
  __shared__ std::uint32_t lost;
  int const source = static_cast<int>(threadIdx.x);
  if (source == 0) lost = *static_cast<std::uint32_t volatile*>(call.lost);
  __syncthreads();
  bool const waits = lost == 0 && source < most_ranks && (call.sources >> source & 1u) != 0;
  __syncthreads();
  if (waits) {
    if (!await_number(call, call.signals[parity_of_exchange(expected)] + source, expected)) lost = 1;
    fence_system();
  }
  __syncthreads();
  bool const whole = lost == 0;
  if (!whole && source == 0) {
    *static_cast<std::uint32_t volatile*>(call.lost) = 1;
    *call.told = 1;
    fence_system();
  }
  return whole;
}

/// By all blocks at their end: the last one counts the exchange, unless one of them has lost it. Until then
/// each of them has read the count of the exchange before.
__device__ __forceinline__ void count_round(AwaitedRound const& call, std::uint64_t expected) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  fence_gpu();
  if (atomicAdd(call.blocks_done, 1u) + 1 != gridDim.x) return;
  *call.blocks_done = 0;
  fence_gpu();
  if (*static_cast<std::uint32_t volatile*>(call.lost) == 0) *call.exchanges = expected;
}

/// Where exchange `expected` of a round lies.
__device__ __forceinline__ std::byte const* arrived_in(ArrivedRound const& round, std::uint64_t expected) {
  return round.first + parity_of_exchange(expected) * round.other_buffer;
}

}  // namespace hostless::gpu
