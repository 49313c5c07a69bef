#pragma once

#include <cstdint>

#include "hostless/base/anywhere.hpp"

namespace hostless {

/// Maps leaves to (slice, lane, slot): leaf = first(slice) + slot * lanes + lane. A leaf is `block`
/// consecutive rows.
///
/// Data of the plan, never chosen by a run: the order of every sum follows from it (docs/decisions/0001).
struct Tiling {
  std::int64_t leaves = 0;  ///< owned rows / block
  int block = 1;            ///< rows of a leaf: the block size found in the matrix, else 1
  int slices = 264;         ///< 132 blocks of 512 threads, two slices each
  static constexpr int lanes = 256;

  /// First leaf of slice s; first(slices) == leaves.
  HOSTLESS_ANYWHERE std::int64_t first(int s) const { return leaves * s / slices; }
  HOSTLESS_ANYWHERE std::int64_t rows() const { return leaves * block; }
};

}  // namespace hostless
