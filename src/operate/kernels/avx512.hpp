#pragma once
// The texts of AVX2, and in vectors of 64 bytes what these make faster: whole diagonals of several right-hand
// sides. A lane adds what it adds there, in the same order.

#include "operate/kernels/avx2.hpp"

#if HOSTLESS_HAS_VECTORS

/// No lambda holds an intrinsic: it would not inherit the target.
#define HOSTLESS_LONG_VECTOR HOSTLESS_TARGET_V4 __attribute__((always_inline)) inline

namespace hostless::avx512 {

using avx2::bsr;
using avx2::bsr_of_sides;
using avx2::csr;
using avx2::csr_of_sides;
using avx2::enter;
using avx2::halved;
using avx2::halved_of_sides;
using avx2::other_group_of_sides;
using avx2::sell;

constexpr int vectors = group_block_rows / 8;

/// Ones for the lanes of vector v of a group that lie below lane `count` of the group, 0 to 32.
HOSTLESS_LONG_VECTOR __mmask8 lanes_below(int count, int v) {
  return static_cast<__mmask8>(((std::uint64_t{1} << count) - 1) >> (8 * v));
}

/// All rows of the group at once: W sums of each.
template <int W>
HOSTLESS_LONG_VECTOR void whole_diagonals(MatrixView const& a, SellGroup const& group, int lanes, int at_out,
                                          RightHandSides const& of) {
  Diagonal const* diagonal = a.diagonal + group.column;
  double const* value = a.value + group.value;
  __m512d sum[W][vectors];
  HOSTLESS_UNROLLED
  for (int w = 0; w < W; ++w) {
    HOSTLESS_UNROLLED
    for (int v = 0; v < vectors; ++v) sum[w][v] = _mm512_setzero_pd();
  }
  for (std::int32_t k = 0; k < group.width; ++k) {
    Diagonal const one = diagonal[k];
    avx2::fetch_diagonal<W>(diagonal, k, value, of);
    __m512d entry[vectors];
    if (one.split == group_block_rows) {
      HOSTLESS_UNROLLED
      for (int v = 0; v < vectors; ++v) entry[v] = _mm512_loadu_pd(value + one.low + 8 * v);
    } else {
      HOSTLESS_UNROLLED
      for (int v = 0; v < vectors; ++v)
        entry[v] = _mm512_mask_loadu_pd(_mm512_loadu_pd(value + one.high + 8 * v), lanes_below(one.split, v),
                                        value + one.low + 8 * v);
    }
    HOSTLESS_UNROLLED
    for (int w = 0; w < W; ++w) {
      double const* const xs = of.x[w] + one.first;
      HOSTLESS_UNROLLED
      for (int v = 0; v < vectors; ++v)
        sum[w][v] = _mm512_fmadd_pd(entry[v], _mm512_loadu_pd(xs + 8 * v), sum[w][v]);
    }
  }
  // Stores of whole vectors where all are wanted: what a masked one has stored a load cannot take before it is in
  // the cache.
  if (lanes == group_block_rows) {
    HOSTLESS_UNROLLED
    for (int w = 0; w < W; ++w) {
      HOSTLESS_UNROLLED
      for (int v = 0; v < vectors; ++v) _mm512_storeu_pd(of.out[w] + at_out + 8 * v, sum[w][v]);
    }
    return;
  }
  HOSTLESS_UNROLLED
  for (int w = 0; w < W; ++w) {
    HOSTLESS_UNROLLED
    for (int v = 0; v < vectors; ++v) {
      int const left = lanes - 8 * v;
      if (left > 0)
        _mm512_mask_storeu_pd(of.out[w] + at_out + 8 * v, lanes_below(left < 8 ? left : 8, 0), sum[w][v]);
    }
  }
}

#define HOSTLESS_SIDES_VECTOR HOSTLESS_LONG_VECTOR
#include "operate/kernels/sides_groups.impl.hpp"

}  // namespace hostless::avx512

#else
namespace hostless::avx512 {
using namespace avx2;
}
#endif
