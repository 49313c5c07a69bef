#pragma once
// What a kernel is told that steps one GPU's part of a grid, a thread a cell, with the kernels of other GPUs.

#include <cstdint>

namespace hostless::gpu {

/// Rows of the first axis that kernels of neighbouring parts show each other, as words that bear the number
/// of the exchange (cell_words.gpu.hpp). Sides: 0 before the own rows, 1 after.
struct HaloWords {
  std::uint64_t* to[2] = {};          ///< in the other part's memory; null: no part is on that side
  std::uint64_t const* from[2] = {};  ///< in this one's
  std::int64_t cells = 0;             ///< of a halo, of one field
  std::int64_t own_first[2] = {};   ///< cells of the own rows that the other part sees, from an array's first
  std::int64_t halo_first[2] = {};  ///< of the halo
  std::int64_t every = 1;           ///< steps between two exchanges
  std::uint32_t epoch = 1;          ///< of the first
};

}  // namespace hostless::gpu
