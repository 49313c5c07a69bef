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

/// By one block: what it passes on of an exchange whose words are of this epoch, on rising levels. first:
/// [levels + 1] of this block. False: something did not come, and nothing more is awaited.
template <class Deliver>
__device__ __forceinline__ bool pass_on(RoutedView const& peers, std::int32_t const* first,
                                        std::uint32_t epoch, std::uint64_t deadline_cycles,
                                        Deliver const& deliver) {
  FlaggedWord const* const here = peers.staged[parity_of(epoch)][peers.rank];
  std::int32_t const lane = static_cast<std::int32_t>(threadIdx.x) % 32;
  for (int level = 1; level < peers.levels; ++level)
    for (std::int32_t at = first[level] + static_cast<std::int32_t>(threadIdx.x);
         at - lane < first[level + 1]; at += block_threads) {  // a warp stays together
      bool const exists = at < first[level + 1];
      PeerCopy const item = peers.copies[exists ? at : first[level]];
      FlaggedWord flagged_word[1];
      if (!await_flagged_words([&](int) { return here + item.from; }, exists ? 1u : 0u, flagged_word, epoch,
                               deadline_cycles))
        return false;
      if (exists) deliver(item, value_of(flagged_word[0]));
    }
  return true;
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
