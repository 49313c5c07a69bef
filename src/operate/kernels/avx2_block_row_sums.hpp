#pragma once

#include "operate/kernels/avx2_vector.hpp"

namespace hostless::avx2 {

/// rows[i] lane c = value[c * stride + i]: a block of 4 x 4, transposed.
HOSTLESS_VECTOR void transpose(double const* value, int stride, __m256d* rows) {
  __m256d const a = _mm256_loadu_pd(value), b = _mm256_loadu_pd(value + stride);
  __m256d const c = _mm256_loadu_pd(value + 2 * stride), d = _mm256_loadu_pd(value + 3 * stride);
  __m256d const ab_even = _mm256_unpacklo_pd(a, b), ab_odd = _mm256_unpackhi_pd(a, b);
  __m256d const cd_even = _mm256_unpacklo_pd(c, d), cd_odd = _mm256_unpackhi_pd(c, d);
  rows[0] = _mm256_permute2f128_pd(ab_even, cd_even, 0x20);
  rows[1] = _mm256_permute2f128_pd(ab_odd, cd_odd, 0x20);
  rows[2] = _mm256_permute2f128_pd(ab_even, cd_even, 0x31);
  rows[3] = _mm256_permute2f128_pd(ab_odd, cd_odd, 0x31);
}

/// The sums of one block row; add() takes one column-major block and the b values of x it meets,
/// add_transposed() its transpose.
template <int b>
struct BlockRowSums;

template <>
struct BlockRowSums<2> {
  static constexpr int in_flight = 2;
  using Spread = __m128d[2];
  __m128d sum;
  HOSTLESS_VECTOR void clear() { sum = _mm_setzero_pd(); }
  HOSTLESS_VECTOR void add(double const* value, double const* x) {
    sum = _mm_fmadd_pd(_mm_loadu_pd(value), _mm_loaddup_pd(x), sum);
    sum = _mm_fmadd_pd(_mm_loadu_pd(value + 2), _mm_loaddup_pd(x + 1), sum);
  }
  HOSTLESS_VECTOR static void spread(double const* x, Spread& all) {
    for (int c = 0; c < 2; ++c) all[c] = _mm_loaddup_pd(x + c);
  }
  HOSTLESS_VECTOR void add_transposed(double const* value, Spread const& x) {
    __m128d const left = _mm_loadu_pd(value), right = _mm_loadu_pd(value + 2);
    sum = _mm_fmadd_pd(_mm_unpacklo_pd(left, right), x[0], sum);
    sum = _mm_fmadd_pd(_mm_unpackhi_pd(left, right), x[1], sum);
  }
  HOSTLESS_VECTOR void load(double const* in) { sum = _mm_loadu_pd(in); }
  HOSTLESS_VECTOR void keep(double* to) const { _mm_storeu_pd(to, sum); }
  HOSTLESS_VECTOR void take(double* in) {
    load(in);
    _mm_storeu_pd(in, _mm_setzero_pd());
  }
  HOSTLESS_VECTOR void store(double* out) const { _mm_storeu_pd(out, sum); }
};

/// Four lanes are loaded for three rows; the fourth holds what follows in memory and is never stored.
template <>
struct BlockRowSums<3> {
  static constexpr int in_flight = 1;
  using Spread = __m256d[3];
  __m256d sum;
  HOSTLESS_VECTOR void clear() { sum = _mm256_setzero_pd(); }
  HOSTLESS_VECTOR void add(double const* value, double const* x) {
    sum = _mm256_fmadd_pd(_mm256_loadu_pd(value), _mm256_broadcast_sd(x), sum);
    sum = _mm256_fmadd_pd(_mm256_loadu_pd(value + 3), _mm256_broadcast_sd(x + 1), sum);
    sum = _mm256_fmadd_pd(_mm256_loadu_pd(value + 6), _mm256_broadcast_sd(x + 2), sum);
  }
  HOSTLESS_VECTOR static void spread(double const* x, Spread& all) {
    for (int c = 0; c < 3; ++c) all[c] = _mm256_broadcast_sd(x + c);
  }
  HOSTLESS_VECTOR void add_transposed(double const* value, Spread const& x) {
    __m256d const left = _mm256_loadu_pd(value), middle = _mm256_loadu_pd(value + 3);
    __m256d const even = _mm256_unpacklo_pd(left, middle), odd = _mm256_unpackhi_pd(left, middle);
    __m256d const first = _mm256_insertf128_pd(even, _mm_loadu_pd(value + 6), 1);
    __m256d const second = _mm256_insertf128_pd(odd, _mm_loadu_pd(value + 7), 1);
    __m256d const third =
        _mm256_blend_pd(_mm256_permute2f128_pd(even, even, 0x11), _mm256_broadcast_sd(value + 8), 0b1100);
    sum = _mm256_fmadd_pd(first, x[0], sum);
    sum = _mm256_fmadd_pd(second, x[1], sum);
    sum = _mm256_fmadd_pd(third, x[2], sum);
  }
  HOSTLESS_VECTOR void load(double const* in) { sum = _mm256_loadu_pd(in); }
  HOSTLESS_VECTOR void keep(double* to) const { _mm256_storeu_pd(to, sum); }
  HOSTLESS_VECTOR void take(double* in) {
    load(in);
    _mm256_storeu_pd(in, _mm256_setzero_pd());
  }
  HOSTLESS_VECTOR void store(double* out) const {
    _mm_storeu_pd(out, _mm256_castpd256_pd128(sum));
    _mm_store_sd(out + 2, _mm256_extractf128_pd(sum, 1));
  }
};

template <>
struct BlockRowSums<4> {
  static constexpr int in_flight = 1;
  using Spread = __m256d[4];
  __m256d sum;
  HOSTLESS_VECTOR void clear() { sum = _mm256_setzero_pd(); }
  HOSTLESS_VECTOR void add(double const* value, double const* x) {
    for (int c = 0; c < 4; ++c) {
      sum = _mm256_fmadd_pd(_mm256_loadu_pd(value + 4 * c), _mm256_broadcast_sd(x + c), sum);
    }
  }
  HOSTLESS_VECTOR static void spread(double const* x, Spread& all) {
    for (int c = 0; c < 4; ++c) all[c] = _mm256_broadcast_sd(x + c);
  }
  HOSTLESS_VECTOR void add_transposed(double const* value, Spread const& x) {
    __m256d rows[4];
    transpose(value, 4, rows);
    for (int c = 0; c < 4; ++c) sum = _mm256_fmadd_pd(rows[c], x[c], sum);
  }
  HOSTLESS_VECTOR void load(double const* in) { sum = _mm256_loadu_pd(in); }
  HOSTLESS_VECTOR void keep(double* to) const { _mm256_storeu_pd(to, sum); }
  HOSTLESS_VECTOR void take(double* in) {
    load(in);
    _mm256_storeu_pd(in, _mm256_setzero_pd());
  }
  HOSTLESS_VECTOR void store(double* out) const { _mm256_storeu_pd(out, sum); }
};

template <>
struct BlockRowSums<6> {
  static constexpr int in_flight = 1;
  using Spread = __m256d[6];
  __m256d low;
  __m128d high;
  HOSTLESS_VECTOR void clear() {
    low = _mm256_setzero_pd();
    high = _mm_setzero_pd();
  }
  HOSTLESS_VECTOR void add(double const* value, double const* x) {
    for (int c = 0; c < 6; ++c) {
      __m256d const same = _mm256_broadcast_sd(x + c);
      low = _mm256_fmadd_pd(_mm256_loadu_pd(value + 6 * c), same, low);
      high = _mm_fmadd_pd(_mm_loadu_pd(value + 6 * c + 4), _mm256_castpd256_pd128(same), high);
    }
  }
  HOSTLESS_VECTOR static void spread(double const* x, Spread& all) {
    for (int c = 0; c < 6; ++c) all[c] = _mm256_broadcast_sd(x + c);
  }
  HOSTLESS_VECTOR void add_transposed(double const* value, Spread const& x) {
    __m256d rows[6];
    transpose(value, 6, rows);
    __m256d below[4];  // rows 4 and 5 of the block's first four columns, as far as they are used
    transpose(value + 2, 6, below);
    rows[4] = below[2];
    rows[5] = below[3];
    for (int c = 0; c < 6; ++c) {
      low = _mm256_fmadd_pd(rows[c], x[c], low);
      __m128d const last = _mm_loadh_pd(_mm_load_sd(value + 24 + c), value + 30 + c);
      high = _mm_fmadd_pd(last, _mm256_castpd256_pd128(x[c]), high);
    }
  }
  HOSTLESS_VECTOR void load(double const* in) {
    low = _mm256_loadu_pd(in);
    high = _mm_loadu_pd(in + 4);
  }
  HOSTLESS_VECTOR void keep(double* to) const {
    _mm256_storeu_pd(to, low);
    _mm_storeu_pd(to + 4, high);
  }
  HOSTLESS_VECTOR void take(double* in) {
    load(in);
    _mm256_storeu_pd(in, _mm256_setzero_pd());
    _mm_storeu_pd(in + 4, _mm_setzero_pd());
  }
  HOSTLESS_VECTOR void store(double* out) const {
    _mm256_storeu_pd(out, low);
    _mm_storeu_pd(out + 4, high);
  }
};

}  // namespace hostless::avx2
