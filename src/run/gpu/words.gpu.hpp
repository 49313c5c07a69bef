#pragma once
// Numbers that say for themselves when they have arrived: words with an epoch (device/runtime.hpp). A wait
// ends with the word of its epoch, with poison, or at its deadline.

#include "device/runtime.hpp"

namespace hostless::gpu {

constexpr std::uint32_t poison = 0x80000000u;

/// Epochs have 31 bits and alternate their parity, also where they begin again.
HOSTLESS_ANYWHERE std::uint32_t next_epoch(std::uint32_t epoch) {
  return epoch + 1 == poison ? 2 : epoch + 1;
}

__device__ __forceinline__ void put_value(Word* to, double value, std::uint32_t epoch) {
  auto const bits = static_cast<std::uint64_t>(__double_as_longlong(value));
  store_word(to, static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32), epoch);
}
__device__ __forceinline__ double value_of(Word const& word) {
  return __longlong_as_double(
      static_cast<long long>(static_cast<std::uint64_t>(word.part[2]) << 32 | word.part[0]));
}
__device__ __forceinline__ bool matches(Word const& word, std::uint32_t epoch) {
  return word.part[1] == epoch && word.part[3] == epoch;
}

/// Polls until the word belongs to this epoch. False: poisoned, or the deadline passed.
__device__ __forceinline__ bool await_word(Word const* from, Word& word, std::uint32_t epoch,
                                           std::uint64_t deadline_cycles) {
  std::uint64_t const begin = cycles();
  for (std::uint32_t polls = 1;; ++polls) {
    word = load_word(from);
    if (matches(word, epoch)) return true;
    if (((word.part[1] | word.part[3]) & poison) != 0) return false;
    if (polls % 1024 == 0 && cycles() - begin > deadline_cycles) return false;
  }
}

}  // namespace hostless::gpu
