#pragma once
// What the texts for several right-hand sides share. Entries of the same row lie beside each other, in the
// lanes of a vector: an entry of the matrix meets all sides in one fma, x of them is one load, and sums that
// wait are one store. Each lane adds what its side adds alone, in the same order.
//
// Against four vectors at four places, of hex8 elasticity (Zen 3): no lane is idle for blocks of 3, nothing
// is transposed, and 10 streams instead of 40 come from the second cache.

#include "operate/kernels/avx2_block_row_sums.hpp"
#include "operate/kernels/scalar.hpp"

namespace hostless::avx2 {

constexpr int sides = wide_sides;

/// x of units of u rows where a window has them.
template <int u>
struct FromWindow {
  double const* values;
  std::int64_t mask;
  HOSTLESS_VECTOR double const* at(std::int64_t unit) const { return values + (unit & mask) * (u * sides); }
  HOSTLESS_VECTOR __m256d row(double const* unit, int j) const { return _mm256_loadu_pd(unit + j * sides); }
};
/// x where it lies.
template <int u>
struct FromVectors {
  double const* const* x;
  HOSTLESS_VECTOR std::int64_t at(std::int64_t unit) const { return unit * u; }
  HOSTLESS_VECTOR __m256d row(std::int64_t first, int j) const {
    std::int64_t const i = first + j;
    __m128d const low = _mm_loadh_pd(_mm_load_sd(x[0] + i), x[1] + i);
    __m128d const high = _mm_loadh_pd(_mm_load_sd(x[2] + i), x[3] + i);
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(low), high, 1);
  }
};

/// to[(row - first) * sides + side] = x[side][row] of rows [first, last).
HOSTLESS_VECTOR void interleave(double const* const* x, std::int64_t first, std::int64_t last, double* to) {
  std::int64_t row = first;
  for (; row + 4 <= last; row += 4, to += 4 * sides) {
    __m256d const a = _mm256_loadu_pd(x[0] + row), b = _mm256_loadu_pd(x[1] + row);
    __m256d const c = _mm256_loadu_pd(x[2] + row), d = _mm256_loadu_pd(x[3] + row);
    __m256d const ab_even = _mm256_unpacklo_pd(a, b), ab_odd = _mm256_unpackhi_pd(a, b);
    __m256d const cd_even = _mm256_unpacklo_pd(c, d), cd_odd = _mm256_unpackhi_pd(c, d);
    _mm256_storeu_pd(to, _mm256_permute2f128_pd(ab_even, cd_even, 0x20));
    _mm256_storeu_pd(to + 4, _mm256_permute2f128_pd(ab_odd, cd_odd, 0x20));
    _mm256_storeu_pd(to + 8, _mm256_permute2f128_pd(ab_even, cd_even, 0x31));
    _mm256_storeu_pd(to + 12, _mm256_permute2f128_pd(ab_odd, cd_odd, 0x31));
  }
  for (; row < last; ++row)
    for (int w = 0; w < sides; ++w) *to++ = x[w][row];
}

/// Whether a slot's x is in the window, which is filled as far as the slot reads.
template <int u>
HOSTLESS_VECTOR bool enter(MatrixView const& a, int s, std::int64_t first_block_row,
                           RightHandSides const& of) {
  SidesWindow& window = *of.window;
  SlotReads const reads =
      a.reads[a.first_reads[s] + (first_block_row - a.tiling.first(s)) / Tiling::accumulators];
  if (reads.last == reads.first) return true;
  if (reads.last - reads.first > window.size) return false;
  if (!follows(reads, window.first, window.end, window.size)) window.first = window.end = reads.first;
  while (window.end < reads.last) {
    std::int64_t const in_window = window.end & (window.size - 1);
    std::int64_t const room = window.size - in_window, wanted = reads.last - window.end;
    std::int64_t const last = window.end + (wanted < room ? wanted : room);
    interleave(of.x, window.end * u, last * u, window.values + in_window * (u * sides));
    window.end = last;
  }
  return true;
}

/// out[side][at + i] = sums[i][side] of `rows` rows, for the sides that are wanted.
HOSTLESS_VECTOR void store_rows(double const* sums, int rows, RightHandSides const& of, int at) {
  int row = 0;
  for (; row + 4 <= rows; row += 4) {
    __m256d turned[4];
    transpose(sums + row * sides, sides, turned);
    HOSTLESS_UNROLLED
    for (int w = 0; w < sides; ++w)
      if (w < of.count) _mm256_storeu_pd(of.out[w] + at + row, turned[w]);
  }
  for (; row < rows; ++row)
    for (int w = 0; w < of.count; ++w) of.out[w][at + row] = sums[row * sides + w];
}

}  // namespace hostless::avx2
