#pragma once
// A block that waits on a stream for signals (signals.hpp), from other GPUs or from the host; it has a
// deadline and hears the host.

#include "device/runtime.hpp"
#include "transport/stream/limits.hpp"
#include "transport/stream/signals.hpp"

namespace hostless::gpu {

/// What kernels that wait share with the host.
struct AwaitCall {
  std::uint64_t const* signals;  ///< [ranks] of one channel and parity
  std::uint64_t* arrived;        ///< arrivals there so far, from each
  std::uint32_t sources;         ///< ranks as bits
  std::uint32_t* lost;           ///< of this rank: no later kernel waits any more
  std::uint32_t const* ended;    ///< mapped: the host has given up
  std::uint32_t* told;           ///< mapped: a kernel has
  std::uint64_t deadline_cycles;
};

// Volatile: strong, of the whole system, and eight bytes at once, on both vendors' GPUs.
__device__ __forceinline__ std::uint64_t load_signal(std::uint64_t const* from) {
  return *static_cast<std::uint64_t const volatile*>(from);
}
__device__ __forceinline__ void store_signal(std::uint64_t* to, std::uint64_t value) {
  *static_cast<std::uint64_t volatile*>(to) = value;
}

__device__ __forceinline__ bool await_signal(AwaitCall const& call, int source, std::uint64_t expected) {
  std::uint64_t const begin = cycles();
  for (std::uint32_t polls = 1;; ++polls) {
    Arrival const found = arrival_of(load_signal(call.signals + source), expected);
    if (found != Arrival::none) return found == Arrival::whole;
    if (polls % 1024 == 0 && (load_host(call.ended) != 0 || cycles() - begin > call.deadline_cycles))
      return false;
  }
}

/// By all threads of the one block of a kernel, a thread for each rank that sends: one more arrival from
/// each. What came before a signal is read by the block and by the kernels that follow. False: it never came.
__device__ __forceinline__ bool await_signals(AwaitCall const& call) {
  __shared__ std::uint32_t lost;
  int const source = static_cast<int>(threadIdx.x);
  std::uint64_t const expected = *call.arrived + 1;
  if (source == 0) lost = *call.lost;
  __syncthreads();
  bool const waits = lost == 0 && source < most_ranks && (call.sources >> source & 1u) != 0;
  __syncthreads();
  if (waits) {
    if (!await_signal(call, source, expected)) lost = 1;
    fence_system();
  }
  __syncthreads();
  bool const whole = lost == 0;
  if (source == 0) {
    if (whole) {
      *call.arrived = expected;
    } else {
      *call.lost = 1;
      *call.told = 1;
      fence_system();
    }
  }
  return whole;
}

}  // namespace hostless::gpu
