#pragma once
// What the kernels of one rank do with the memory of others: values of own rows go straight into the ghosts
// of their readers. Threads: those of a block, one value each. The stores are plain ones; the barrier that
// follows carries them (fences of the whole system on both sides, docs/protocols.md).

#include "device/runtime.hpp"
#include "run/gpu/launch.hpp"
#include "transport/peer/flagged_words.gpu.hpp"

namespace hostless::gpu {

/// Between ranks what another GPU has stored must be seen; with one rank that would cost a microsecond.
__device__ __forceinline__ void fence_ranks(PeerView const* peers) {
  if (peers == nullptr) {
    fence_gpu();
  } else {
    fence_system();
  }
}

/// Which of the sent fields lives there.
__device__ __forceinline__ int sent_field(PeerView const& peers, double const* memory) {
  int which = 0;
  while (which + 1 < PeerView::sent_fields && peers.sent[which][peers.rank] != memory) ++which;
  return which;
}

/// Where an item goes, of that field.
__device__ __forceinline__ double* target_of(PeerView const& peers, PeerCopy const& item, int which) {
  return (item.to_staging ? peers.staging[item.target] : peers.sent[which][item.target]) + item.to;
}

/// By one block, after its threads have met: items [first, end) of round 0, which are those of its slices,
/// several of a thread at once.
__device__ __forceinline__ void send_items(PeerView const& peers, double const* memory, std::int32_t first,
                                           std::int32_t end) {
  constexpr int together = 4;
  int const which = sent_field(peers, memory);
  for (std::int32_t at = first + static_cast<std::int32_t>(threadIdx.x); at < end;
       at += together * block_threads) {
    PeerCopy item[together];
    double value[together];
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u)
      if (at + u * block_threads < end) item[u] = peers.item[at + u * block_threads];
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u)
      if (at + u * block_threads < end) value[u] = memory[item[u].from];
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u) {
      if (at + u * block_threads >= end) break;
      *target_of(peers, item[u], which) = value[u];
    }
  }
}

/// By all blocks, after all ranks have met: what is handed on in a round of a plan with several.
__device__ __forceinline__ void send_round(PeerView const& peers, double const* memory, int round) {
  int const which = sent_field(peers, memory);
  std::int32_t const end = peers.first_of_round[round + 1];
  for (std::int32_t at =
           peers.first_of_round[round] + static_cast<std::int32_t>(blockIdx.x * block_threads + threadIdx.x);
       at < end; at += static_cast<std::int32_t>(gridDim.x * block_threads)) {
    PeerCopy const& item = peers.item[at];
    double const* const from = item.from_staging ? peers.staging[peers.rank] : memory;
    *target_of(peers, item, which) = from[item.from];
  }
}

}  // namespace hostless::gpu
