#pragma once
// Waiting for numbers that say for themselves when they have arrived: words with an epoch
// (device/runtime.hpp). A wait ends with the word of its epoch, with poison, or at its deadline.

#include "device/runtime.hpp"
#include "run/gpu/epochs.hpp"

namespace hostless::gpu {

__device__ __forceinline__ void put_value(Word* to, double value, std::uint32_t epoch) {
  Word const word = word_of(static_cast<std::uint64_t>(__double_as_longlong(value)), epoch);
  store_word(to, word.part[0], word.part[2], epoch);
}
__device__ __forceinline__ double value_of(Word const& word) {
  return __longlong_as_double(static_cast<long long>(bits_of(word)));
}

/// Polls until the word belongs to this epoch. False: poisoned, or the deadline passed.
__device__ __forceinline__ bool await_word(Word const* from, Word& word, std::uint32_t epoch,
                                           std::uint64_t deadline_cycles) {
  std::uint64_t const begin = cycles();
  for (std::uint32_t polls = 1;; ++polls) {
    word = load_word(from);
    if (matches(word, epoch)) return true;
    if (is_poisoned(word)) return false;
    if (polls % 1024 == 0 && cycles() - begin > deadline_cycles) return false;
  }
}
/// The same by all lanes of a warp together, several words a lane: word u, where its bit is set in `wanted`,
/// comes from place(u). A lane that has its words goes on asking with the others: where lanes part, a barrier
/// of all blocks takes half as long again.
template <int together, class Place>
__device__ __forceinline__ bool await_words(Place const& place, std::uint32_t wanted, Word (&word)[together],
                                            std::uint32_t epoch, std::uint64_t deadline_cycles) {
  std::uint64_t const begin = cycles();
  for (std::uint32_t polls = 1;; ++polls) {
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u)
      if ((wanted >> u & 1u) != 0) word[u] = load_word(place(u));
    bool whole = true, poisoned = false;
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u) {
      bool const is_wanted = (wanted >> u & 1u) != 0;
      whole = whole && (!is_wanted || matches(word[u], epoch));
      poisoned = poisoned || (is_wanted && is_poisoned(word[u]));
    }
    if (all_lanes(whole)) return true;
    if (any_lane(poisoned)) return false;
    if (polls % 1024 == 0 && any_lane(cycles() - begin > deadline_cycles)) return false;
  }
}

}  // namespace hostless::gpu
