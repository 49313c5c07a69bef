#pragma once
// How a kernel of several right-hand sides works on fields: a block row of several sides in registers; and a
// field that is formed in two arrays by turns, with what x is owed of them.

#include <cstdint>
#include <type_traits>

#include "run/gpu/fields.gpu.hpp"

namespace hostless::gpu {

/// A field that is formed from what lies in another place.
struct Turned {
  Field from, to;
};
template <class View>
__device__ __forceinline__ Field loaded_from(View view) {
  if constexpr (std::is_same_v<View, Turned>) {
    return view.from;
  } else {
    return ViewTraits<View>::field(view);
  }
}
template <class View>
__device__ __forceinline__ Field stored_to(View view) {
  if constexpr (std::is_same_v<View, Turned>) {
    return view.to;
  } else {
    return ViewTraits<View>::field(view);
  }
}

/// G sides of one field's block row, from `first` on, in registers.
template <int B, int W, int G>
struct StagedSides {
  static_assert(G % 2 == 0);
  double value[B][G];

  template <class View>
  __device__ __forceinline__ void load(View view, int first, int slot, std::int64_t block_row) {
    Field const field = loaded_from(view);
    if (slot < field.on_chip) {
      double const* const from = on_chip(field, first, slot);
      HOSTLESS_UNROLL
      for (int at = 0; at < B * G; ++at) value[at / G][at % G] = from[(at / G * W + at % G) * block_threads];
    } else {
      double const* const from = field.memory + block_row * (B * W) + first;
      HOSTLESS_UNROLL
      for (int at = 0; at < B * G; at += 2) {
        EntryPair const pair = *reinterpret_cast<EntryPair const*>(from + at / G * W + at % G);
        value[at / G][at % G] = pair.of[0];
        value[at / G][at % G + 1] = pair.of[1];
      }
    }
  }
  /// stored: a bit for each side that is.
  template <class View>
  __device__ __forceinline__ void store(View view, int first, int slot, std::int64_t block_row,
                                        std::uint32_t stored) const {
    if constexpr (ViewTraits<View>::writes) {
      Field const field = stored_to(view);
      if (slot < field.on_chip) {
        double* const to = on_chip(field, first, slot);
        HOSTLESS_UNROLL
        for (int at = 0; at < B * G; ++at)
          if ((stored >> (first + at % G) & 1u) != 0)
            to[(at / G * W + at % G) * block_threads] = value[at / G][at % G];
        return;
      }
      double* const to = field.memory + block_row * (B * W) + first;
      if (stored == (1u << W) - 1u) {
        HOSTLESS_UNROLL
        for (int at = 0; at < B * G; at += 2)
          *reinterpret_cast<EntryPair*>(to + at / G * W + at % G) = {value[at / G][at % G],
                                                                     value[at / G][at % G + 1]};
      } else {
        HOSTLESS_UNROLL
        for (int at = 0; at < B * G; ++at)
          if ((stored >> (first + at % G) & 1u) != 0) to[at / G * W + at % G] = value[at / G][at % G];
      }
    }
  }

 private:
  __device__ static __forceinline__ double* on_chip(Field const& field, int first, int slot) {
    return pool() + field.shared + (slot * (B * W) + first) * block_threads + threadIdx.x;
  }
};
/// One of them, as bodies see it.
template <int B, int W, int G>
struct Side {
  StagedSides<B, W, G>& staged;
  int number;
  __device__ __forceinline__ double& operator()(BlockRow<B>, int j) const { return staged.value[j][number]; }
};

/// The two places of the direction, and what x is owed of them. In shared memory: registers are those of W
/// sides. Written by one thread, right before or behind a barrier that is between that and who reads.
template <int W>
struct DeferredUpdate {
  double step[2][W];           ///< of the sides in both places
  double* array[2];            ///< the first, and the second
  double* x;                   ///< of a Field: its memory,
  int x_shared, x_on_chip;     ///< and its slots on chip
  int here;                    ///< the place in which it is
  std::uint32_t older, newer;  ///< sides of which x is owed what is in the other place; in this one
  bool turned;                 ///< since both have held the same
  __device__ Field field_of_x() const { return {x, x_shared, x_on_chip}; }
};

}  // namespace hostless::gpu
