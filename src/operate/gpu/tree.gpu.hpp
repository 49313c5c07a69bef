#pragma once
// The tree of the plan's sums, t[i] = t[2 i] + t[2 i + 1], over what lanes of a warp hold and over what comes
// one after the other. Every run on a GPU adds by these.

#include "device/block.hpp"
#include "device/runtime.hpp"

namespace hostless::gpu {

constexpr int warps = block_threads / 32;

/// The sum over groups of `count` neighbouring lanes, a power of two, in each of them.
template <int count>
__device__ __forceinline__ double add_lanes(double value) {
  HOSTLESS_UNROLL
  for (int distance = 1; distance < count; distance *= 2) value += exchange_lanes(value, distance);
  return value;
}

/// Rows of CSR whose accumulators are lanes of a warp (multiply_shared_csr): `w` neighbours share the rows of
/// each of them, in turn.
struct SharedRows {
  int w, mine;
  __device__ __forceinline__ SharedRows(int accumulators, std::int32_t lane)
      : w(accumulators), mine(lane & (accumulators - 1)) {}
  __device__ __forceinline__ int turns() const { return w; }
  __device__ __forceinline__ int distance(int turn) const { return turn - mine; }
  template <class Accumulator>
  __device__ __forceinline__ double add(Accumulator const& accumulator) const {
    double value = accumulator(mine);
    for (int distance = 1; distance < w; distance *= 2) value += exchange_lanes(value, distance);
    return value;
  }
};

/// Value i of at most 2^(levels - 1) that come one after the other; the last of them gets the sum. `waiting`:
/// what waits for its right neighbour, by level.
template <int levels>
__device__ __forceinline__ double join(double (&waiting)[levels], double value, int i) {
  int level = 0;
  for (int rest = i; (rest & 1) != 0; rest >>= 1) value = waiting[level++] + value;
  waiting[level] = value;
  return value;
}

}  // namespace hostless::gpu
