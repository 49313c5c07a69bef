#pragma once
// Cells that say for themselves which exchange they belong to: every 32 bits of a cell travel with the number
// of the exchange, in words of 8 bytes, which are stored at once. No fence, no flag beside them: whoever
// finds the number has the bits.

#include "device/runtime.hpp"
#include "transport/peer/epochs.hpp"

namespace hostless::gpu {

/// Words of 8 bytes that a cell takes.
template <class T>
constexpr int words_of_cell = static_cast<int>(sizeof(T) / 4);

/// `unit` cells that are stored and asked for together: 16 bytes, or one cell of fp32 in 8.
template <class T, int unit>
struct CellWords {
  static constexpr int words = unit * words_of_cell<T>;
  static_assert(words == 1 || words == 2);
  FlaggedWord found;

  static __device__ __forceinline__ void put(std::uint64_t* to, T const* cells, std::uint32_t epoch) {
    std::uint32_t bits[words];
    __builtin_memcpy(bits, cells, sizeof bits);
    if constexpr (words == 2) {
      store_flagged_word(reinterpret_cast<FlaggedWord*>(to), bits[0], bits[1], epoch);
    } else {
      *static_cast<std::uint64_t volatile*>(to) = static_cast<std::uint64_t>(epoch) << 32 | bits[0];
    }
  }
  __device__ __forceinline__ void ask(std::uint64_t const* from) {
    if constexpr (words == 2) {
      found = load_flagged_word(reinterpret_cast<FlaggedWord const*>(from));
    } else {
      std::uint64_t const word = *static_cast<std::uint64_t const volatile*>(from);
      found.part[0] = static_cast<std::uint32_t>(word);
      found.part[1] = static_cast<std::uint32_t>(word >> 32);
    }
  }
  __device__ __forceinline__ bool is_of(std::uint32_t epoch) const {
    return found.part[1] == epoch && (words == 1 || found.part[3] == epoch);
  }
  __device__ __forceinline__ void get(T* cells) const {
    std::uint32_t const bits[2] = {found.part[0], found.part[2]};
    __builtin_memcpy(cells, bits, sizeof(T) * unit);
  }
};

}  // namespace hostless::gpu
