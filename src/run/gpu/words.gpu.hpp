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

}  // namespace hostless::gpu
