#pragma once

#include "kernels_scalar.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

/// Kernels in vectors of four doubles with fma. The v4 build compiles the same text: 32 registers and mask
/// registers are the compiler's to use, and wider vectors gain nothing where memory is the limit.
///
/// Products of one row stay in rising column order, one chain of fma (latency 4 cycles): the speed comes from
/// several rows at once, the rows of a block or group in the lanes of a vector, and two or four leaves in
/// flight.
///
/// No lambda holds an intrinsic: it would not inherit the target.
#define HOSTLESS_VECTOR HOSTLESS_TARGET_V3 __attribute__((always_inline)) inline

namespace hostless::avx2 {

/// The sums of one leaf; add() takes one column-major block and the b values of x it meets.
template <int b>
struct LeafSums;

template <>
struct LeafSums<2> {
  static constexpr int in_flight = 4;
  __m128d sum;
  HOSTLESS_VECTOR void clear() { sum = _mm_setzero_pd(); }
  HOSTLESS_VECTOR void add(double const* value, double const* x) {
    sum = _mm_fmadd_pd(_mm_loadu_pd(value), _mm_loaddup_pd(x), sum);
    sum = _mm_fmadd_pd(_mm_loadu_pd(value + 2), _mm_loaddup_pd(x + 1), sum);
  }
  HOSTLESS_VECTOR void store(double* out) const { _mm_storeu_pd(out, sum); }
};

/// Four lanes are loaded for three rows; the fourth holds what follows in memory and is never stored.
template <>
struct LeafSums<3> {
  static constexpr int in_flight = 2;
  __m256d sum;
  HOSTLESS_VECTOR void clear() { sum = _mm256_setzero_pd(); }
  HOSTLESS_VECTOR void add(double const* value, double const* x) {
    sum = _mm256_fmadd_pd(_mm256_loadu_pd(value), _mm256_broadcast_sd(x), sum);
    sum = _mm256_fmadd_pd(_mm256_loadu_pd(value + 3), _mm256_broadcast_sd(x + 1), sum);
    sum = _mm256_fmadd_pd(_mm256_loadu_pd(value + 6), _mm256_broadcast_sd(x + 2), sum);
  }
  HOSTLESS_VECTOR void store(double* out) const {
    _mm_storeu_pd(out, _mm256_castpd256_pd128(sum));
    _mm_store_sd(out + 2, _mm256_extractf128_pd(sum, 1));
  }
};

template <>
struct LeafSums<4> {
  static constexpr int in_flight = 2;
  __m256d sum;
  HOSTLESS_VECTOR void clear() { sum = _mm256_setzero_pd(); }
  HOSTLESS_VECTOR void add(double const* value, double const* x) {
    for (int c = 0; c < 4; ++c) {
      sum = _mm256_fmadd_pd(_mm256_loadu_pd(value + 4 * c), _mm256_broadcast_sd(x + c), sum);
    }
  }
  HOSTLESS_VECTOR void store(double* out) const { _mm256_storeu_pd(out, sum); }
};

template <>
struct LeafSums<6> {
  static constexpr int in_flight = 2;
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
  HOSTLESS_VECTOR void store(double* out) const {
    _mm256_storeu_pd(out, low);
    _mm_storeu_pd(out + 4, high);
  }
};

/// `count` leaves at once, as far as the shortest goes; then each by itself.
template <int b, int count, class Column>
HOSTLESS_VECTOR void bsr_leaves(std::uint32_t const* start, double const* value, Column column,
                                double const* x, double* out) {
  LeafSums<b> sums[count];
  std::int64_t shortest = INT64_MAX;
  for (int i = 0; i < count; ++i) {
    sums[i].clear();
    std::int64_t const length = std::int64_t{start[i + 1]} - start[i];
    if (length < shortest) shortest = length;
  }
  for (std::int64_t k = 0; k < shortest; ++k) {
    for (int i = 0; i < count; ++i) {
      std::int64_t const at = start[i] + k;
      sums[i].add(value + at * b * b, x + column[at] * b);
    }
  }
  for (int i = 0; i < count; ++i) {
    for (std::int64_t at = start[i] + shortest; at < start[i + 1]; ++at) {
      sums[i].add(value + at * b * b, x + column[at] * b);
    }
    sums[i].store(out + i * b);
  }
}

template <int b, class Column>
HOSTLESS_VECTOR void bsr_slot(std::uint32_t const* start, double const* value, Column column, int leaves,
                              double const* x, double* out) {
  constexpr int count = LeafSums<b>::in_flight;
  int leaf = 0;
  for (; leaf + count <= leaves; leaf += count) {
    bsr_leaves<b, count>(start + leaf, value, column, x, out + leaf * b);
  }
  for (; leaf < leaves; ++leaf) bsr_leaves<b, 1>(start + leaf, value, column, x, out + leaf * b);
}

template <int b>
HOSTLESS_VECTOR void bsr(MatrixView const& a, int s, std::int64_t first_leaf, int leaves, double const* x,
                         double* out) {
  SliceStart const& slice = a.slice[s];
  std::uint32_t const* start = a.start + first_leaf + s;
  double const* value = a.value + slice.value;
  if (slice.wide != 0) {
    bsr_slot<b>(start, value, Columns<std::int32_t>{a.wide + slice.column, 0}, leaves, x, out);
  } else {
    bsr_slot<b>(start, value, Columns<std::uint16_t>{a.narrow + slice.column, slice.base}, leaves, x, out);
  }
}

/// Four rows in flight, as far as the shortest goes.
template <class Column>
HOSTLESS_VECTOR void csr_slot(std::uint32_t const* start, double const* value, Column column, int rows,
                              double const* x, double* out) {
  constexpr int count = 4;
  int row = 0;
  for (; row + count <= rows; row += count) {
    double sum[count] = {};
    std::int64_t shortest = INT64_MAX;
    for (int i = 0; i < count; ++i) {
      std::int64_t const length = std::int64_t{start[row + i + 1]} - start[row + i];
      if (length < shortest) shortest = length;
    }
    for (std::int64_t k = 0; k < shortest; ++k) {
      for (int i = 0; i < count; ++i) {
        std::int64_t const at = start[row + i] + k;
        sum[i] = __builtin_fma(value[at], x[column[at]], sum[i]);
      }
    }
    for (int i = 0; i < count; ++i) {
      for (std::int64_t at = start[row + i] + shortest; at < start[row + i + 1]; ++at) {
        sum[i] = __builtin_fma(value[at], x[column[at]], sum[i]);
      }
      out[row + i] = sum[i];
    }
  }
  for (; row < rows; ++row) {
    double sum = 0.0;
    for (std::int64_t at = start[row]; at < start[row + 1]; ++at)
      sum = __builtin_fma(value[at], x[column[at]], sum);
    out[row] = sum;
  }
}

HOSTLESS_VECTOR void csr(MatrixView const& a, int s, std::int64_t first_leaf, int leaves, double const* x,
                         double* out) {
  SliceStart const& slice = a.slice[s];
  std::uint32_t const* start = a.start + first_leaf * a.tiling.block + s;
  double const* value = a.value + slice.value;
  int const rows = leaves * a.tiling.block;
  if (slice.wide != 0) {
    csr_slot(start, value, Columns<std::int32_t>{a.wide + slice.column, 0}, rows, x, out);
  } else {
    csr_slot(start, value, Columns<std::uint16_t>{a.narrow + slice.column, slice.base}, rows, x, out);
  }
}

constexpr int vectors = group_leaves / 4;

/// All bits of lane i where bit i of the low four is set.
HOSTLESS_VECTOR __m256i lanes_of(std::uint32_t mask) {
  __m256i const bit = _mm256_setr_epi64x(1, 2, 4, 8);
  return _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(mask), bit), bit);
}

/// Lanes outside the mask load neither x (it may lie outside the vector) nor anything that is not finite:
/// their stored value is 0 and so is the x they get.
HOSTLESS_VECTOR void add_partial_diagonal(Diagonal diagonal, double const* value, double const* x,
                                          __m256d* sum) {
  for (int v = 0; v < vectors; ++v) {
    std::uint32_t const mask = diagonal.mask >> (4 * v) & 15u;
    if (mask == 0) continue;
    __m256d const xs = _mm256_maskload_pd(x + diagonal.first + 4 * v, lanes_of(mask));
    sum[v] = _mm256_fmadd_pd(_mm256_load_pd(value + 4 * v), xs, sum[v]);
  }
}

HOSTLESS_VECTOR void store_group(__m256d const* sum, int lanes, double* out) {
  if (lanes == group_leaves) {
    for (int v = 0; v < vectors; ++v) _mm256_storeu_pd(out + 4 * v, sum[v]);
    return;
  }
  alignas(32) double all[group_leaves];
  for (int v = 0; v < vectors; ++v) _mm256_store_pd(all + 4 * v, sum[v]);
  for (int lane = 0; lane < lanes; ++lane) out[lane] = all[lane];
}

HOSTLESS_VECTOR void diagonals(MatrixView const& a, SellGroup const& group, int lanes, double const* x,
                               double* out) {
  __m256d sum[vectors];
  for (int v = 0; v < vectors; ++v) sum[v] = _mm256_setzero_pd();
  double const* value = a.value + group.value;
  Diagonal const* diagonal = a.diagonal + group.column;
  for (std::int32_t k = 0; k < group.width; ++k, value += group_leaves) {
    if (diagonal[k].mask == UINT32_MAX) {
      double const* xs = x + diagonal[k].first;
      for (int v = 0; v < vectors; ++v) {
        sum[v] = _mm256_fmadd_pd(_mm256_load_pd(value + 4 * v), _mm256_loadu_pd(xs + 4 * v), sum[v]);
      }
    } else {
      add_partial_diagonal(diagonal[k], value, x, sum);
    }
  }
  store_group(sum, lanes, out);
}

/// Four single loads are as fast as a gather on Intel's cores and faster on AMD's.
template <class Column>
HOSTLESS_VECTOR __m256d four_of(double const* x, Column column, std::int64_t at) {
  __m128d const low = _mm_loadh_pd(_mm_load_sd(x + column[at]), x + column[at + 1]);
  __m128d const high = _mm_loadh_pd(_mm_load_sd(x + column[at + 2]), x + column[at + 3]);
  return _mm256_insertf128_pd(_mm256_castpd128_pd256(low), high, 1);
}

template <int b, class Column>
HOSTLESS_VECTOR void listed(MatrixView const& a, SellGroup const& group, int lanes, Column column,
                            double const* x, double* out) {
  for (int j = 0; j < b; ++j) {
    __m256d sum[vectors];
    for (int v = 0; v < vectors; ++v) sum[v] = _mm256_setzero_pd();
    for (std::int64_t k = 0; k < group.width; ++k) {
      std::int64_t const at = (k * b + j) * group_leaves;
      double const* value = a.value + group.value + at;
      for (int v = 0; v < vectors; ++v) {
        sum[v] = _mm256_fmadd_pd(_mm256_load_pd(value + 4 * v), four_of(x, column, at + 4 * v), sum[v]);
      }
    }
    if (b == 1) {
      store_group(sum, lanes, out);
    } else {
      double row[group_leaves];
      store_group(sum, group_leaves, row);
      for (int lane = 0; lane < lanes; ++lane) out[lane * b + j] = row[lane];
    }
  }
}

template <int b>
HOSTLESS_VECTOR void sell(MatrixView const& a, int s, std::int64_t first_leaf, int leaves, double const* x,
                          double* out) {
  SellGroup const* group = a.group + a.first_group[s] + (first_leaf - a.tiling.first(s)) / group_leaves;
  SliceStart const& slice = a.slice[s];
  for (int leaf = 0; leaf < leaves; leaf += group_leaves, ++group) {
    int const lanes = leaves - leaf < group_leaves ? leaves - leaf : group_leaves;
    if (group->diagonals != 0) {
      diagonals(a, *group, lanes, x, out + leaf);
    } else if (slice.wide != 0) {
      listed<b>(a, *group, lanes, Columns<std::int32_t>{a.wide + group->column, 0}, x, out + leaf * b);
    } else {
      listed<b>(a, *group, lanes, Columns<std::uint16_t>{a.narrow + group->column, slice.base}, x,
                out + leaf * b);
    }
  }
}

}  // namespace hostless::avx2

#else
namespace hostless::avx2 {  // other processors: the compiler's own vectors
using namespace scalar;
}
#endif
