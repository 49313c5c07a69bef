#pragma once
// Waiting for numbers that say for themselves when they have arrived: flagged words with an epoch
// (device/runtime.hpp). A wait ends with the flagged word of its epoch, with poison, or at its deadline.

#include "device/runtime.hpp"
#include "transport/peer/epochs.hpp"

namespace hostless::gpu {

__device__ __forceinline__ void put_value(FlaggedWord* to, double value, std::uint32_t epoch) {
  FlaggedWord const flagged_word =
      flagged_word_of(static_cast<std::uint64_t>(__double_as_longlong(value)), epoch);
  store_flagged_word(to, flagged_word.part[0], flagged_word.part[2], epoch);
}
__device__ __forceinline__ double value_of(FlaggedWord const& flagged_word) {
  return __longlong_as_double(static_cast<long long>(bits_of(flagged_word)));
}

/// Polls until the flagged word belongs to this epoch. False: poisoned, or the deadline passed.
__device__ __forceinline__ bool await_flagged_word(FlaggedWord const* from, FlaggedWord& flagged_word,
                                                   std::uint32_t epoch, std::uint64_t deadline_cycles) {
  std::uint64_t const begin = cycles();
  for (std::uint32_t polls = 1;; ++polls) {
    flagged_word = load_flagged_word(from);
    if (matches(flagged_word, epoch)) return true;
    if (is_poisoned(flagged_word)) return false;
    if (polls % 1024 == 0 && cycles() - begin > deadline_cycles) return false;
  }
}
/// The same by all lanes of a warp together, several flagged words a lane: flagged word u, where its bit is
/// set in `wanted`, comes from address(u). A lane that has its flagged words goes on asking with the others:
/// where lanes part, a barrier of all blocks takes half as long again.
template <int together, class Address>
__device__ __forceinline__ bool await_flagged_words(Address const& address, std::uint32_t wanted,
                                                    FlaggedWord (&flagged_word)[together],
                                                    std::uint32_t epoch, std::uint64_t deadline_cycles) {
  std::uint64_t const begin = cycles();
  for (std::uint32_t polls = 1;; ++polls) {
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u)
      if ((wanted >> u & 1u) != 0) flagged_word[u] = load_flagged_word(address(u));
    bool whole = true, poisoned = false;
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u) {
      bool const is_wanted = (wanted >> u & 1u) != 0;
      whole = whole && (!is_wanted || matches(flagged_word[u], epoch));
      poisoned = poisoned || (is_wanted && is_poisoned(flagged_word[u]));
    }
    if (all_lanes(whole)) return true;
    if (any_lane(poisoned)) return false;
    if (polls % 1024 == 0 && any_lane(cycles() - begin > deadline_cycles)) return false;
  }
}

}  // namespace hostless::gpu
