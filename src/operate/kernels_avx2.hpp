#pragma once

#include "kernels_scalar.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

/// Kernels in vectors of four doubles with fma. The v4 build compiles the same text: 32 registers and mask
/// registers are the compiler's to use, and wider vectors gain nothing where memory is the limit.
///
/// Products of one row stay in rising column order, one chain of fma (latency 4 cycles): the speed comes from
/// several rows at once: the rows of a block or group in the lanes of a vector, some rows or block rows in
/// flight, and the processor's own look ahead into the next row. Values are best read in the order of memory,
/// so block rows with large blocks go one by one.
///
/// No lambda holds an intrinsic: it would not inherit the target.
#define HOSTLESS_VECTOR HOSTLESS_TARGET_V3 __attribute__((always_inline)) inline

namespace hostless::avx2 {

/// How far ahead values are fetched, past the caches that the vectors live in: values are read once a sweep.
/// The processor's own prefetching stops at pages and is confused by several rows at once: on hex8 elasticity
/// fetching ahead took a product from 12.9 to 8.2 ms (Zen 3), from 14.6 to 11.1 (Sapphire Rapids); stored
/// once for both triangles 4.2 (Zen 3, one core; a plain block loop 11.8).
constexpr int stream_ahead = 3072;  // bytes
template <int bytes>
HOSTLESS_VECTOR void fetch(void const* from) {
  for (int at = 0; at < bytes; at += 64) _mm_prefetch(static_cast<char const*>(from) + at, _MM_HINT_NTA);
}
/// What lies stream_ahead after `from`; past the end of an array nothing is fetched and nothing fails.
template <int bytes>
HOSTLESS_VECTOR void fetch_ahead(void const* from) {
  fetch<bytes>(reinterpret_cast<void const*>(reinterpret_cast<std::uintptr_t>(from) + stream_ahead));
}

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

/// `count` block rows at once, as far as the shortest goes; then each by itself.
template <int b, int count, class Column>
HOSTLESS_VECTOR void bsr_block_rows(std::uint32_t const* start, double const* value, Column column,
                                    double const* x, double* out) {
  BlockRowSums<b> sums[count];
  std::int64_t shortest = INT64_MAX;
  for (int i = 0; i < count; ++i) {
    sums[i].clear();
    std::int64_t const length = std::int64_t{start[i + 1]} - start[i];
    if (length < shortest) shortest = length;
  }
  double const* stream = value + std::int64_t{start[0]} * b * b;
  for (std::int64_t k = 0; k < shortest; ++k, stream += count * b * b) {
    fetch_ahead<count * b * b * 8>(stream);
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
HOSTLESS_VECTOR void bsr_slot(std::uint32_t const* start, double const* value, Column column, int block_rows,
                              double const* x, double* out) {
  constexpr int count = BlockRowSums<b>::in_flight;
  int block_row = 0;
  for (; block_row + count <= block_rows; block_row += count) {
    bsr_block_rows<b, count>(start + block_row, value, column, x, out + block_row * b);
  }
  for (; block_row < block_rows; ++block_row)
    bsr_block_rows<b, 1>(start + block_row, value, column, x, out + block_row * b);
}

/// One block row of halved BSR: its blocks are added to its own sum and, transposed, to those of later block
/// rows.
template <int b, class Column>
HOSTLESS_VECTOR void halved_block_row(MatrixView const& a, std::uint32_t const* start, double const* value,
                                      Column column, std::int64_t block_row, double const* x, double* out,
                                      double* ring) {
  double* mine = scalar::waiting<b>(a, ring, block_row);
  BlockRowSums<b> sum, other;
  sum.take(mine);
  typename BlockRowSums<b>::Spread own;
  BlockRowSums<b>::spread(x + block_row * b, own);
  for (std::int64_t k = start[0]; k < start[1]; ++k) {
    double const* block = value + k * b * b;
    fetch_ahead<b * b * 8>(block);
    std::int64_t const at = column[k];
    sum.add(block, x + at * b);
    if (!column.once(k)) continue;
    double* later = scalar::waiting<b>(a, ring, at);
    other.load(later);
    other.add_transposed(block, own);
    other.keep(later);
  }
  sum.store(out);
}

template <int b, class Column>
HOSTLESS_VECTOR void halved_slot(MatrixView const& a, std::uint32_t const* start, double const* value,
                                 Column column, std::int64_t first_block_row, int block_rows, double const* x,
                                 double* out, double* ring) {
  for (int block_row = 0; block_row < block_rows; ++block_row)
    halved_block_row<b>(a, start + block_row, value, column, first_block_row + block_row, x,
                        out + block_row * b, ring);
}

template <int b>
HOSTLESS_VECTOR void halved(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows,
                            double const* x, double* out, double* ring) {
  HalvedView const& h = a.halved;
  FarRange const far = scalar::far_range(a, s, first_block_row);
  for (std::int32_t f = far.first; f < far.last; ++f) {
    BlockRowSums<b> sum;
    sum.clear();
    for (std::int64_t k = h.far_start[f]; k < h.far_start[f + 1]; ++k) {
      fetch_ahead<b * b * 8>(h.far_value + k * b * b);
      sum.add(h.far_value + k * b * b, x + std::int64_t{h.far_column[k]} * b);
    }
    sum.keep(scalar::waiting<b>(a, ring, h.far_block_row[f]));
  }
  SliceStart const& slice = a.slice[s];
  std::uint32_t const* start = a.start + first_block_row + s;
  double const* value = a.value + slice.value;
  if (slice.wide != 0) {
    halved_slot<b>(a, start, value, MarkedColumns<std::int32_t>{a.wide + slice.column, slice.base},
                   first_block_row, block_rows, x, out, ring);
  } else {
    halved_slot<b>(a, start, value, MarkedColumns<std::uint16_t>{a.narrow + slice.column, slice.base},
                   first_block_row, block_rows, x, out, ring);
  }
}

template <int b>
HOSTLESS_VECTOR void bsr(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows,
                         double const* x, double* out) {
  SliceStart const& slice = a.slice[s];
  std::uint32_t const* start = a.start + first_block_row + s;
  double const* value = a.value + slice.value;
  if (slice.wide != 0) {
    bsr_slot<b>(start, value, Columns<std::int32_t>{a.wide + slice.column, 0}, block_rows, x, out);
  } else {
    bsr_slot<b>(start, value, Columns<std::uint16_t>{a.narrow + slice.column, slice.base}, block_rows, x,
                out);
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
    double const* stream = value + start[row];
    for (std::int64_t k = start[row]; k < start[row + count]; k += 8, stream += 8) fetch_ahead<64>(stream);
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

HOSTLESS_VECTOR void csr(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows,
                         double const* x, double* out) {
  SliceStart const& slice = a.slice[s];
  std::uint32_t const* start = a.start + first_block_row * a.tiling.block + s;
  double const* value = a.value + slice.value;
  int const rows = block_rows * a.tiling.block;
  if (slice.wide != 0) {
    csr_slot(start, value, Columns<std::int32_t>{a.wide + slice.column, 0}, rows, x, out);
  } else {
    csr_slot(start, value, Columns<std::uint16_t>{a.narrow + slice.column, slice.base}, rows, x, out);
  }
}

constexpr int vectors = group_block_rows / 4;

/// All bits of lane i where bit i of the low four is set.
HOSTLESS_VECTOR __m256i lanes_of(std::uint32_t mask) {
  __m256i const bit = _mm256_setr_epi64x(1, 2, 4, 8);
  return _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(mask), bit), bit);
}

/// From index 32 - count on: `count` lanes of ones, then zeros.
alignas(64) inline constexpr std::int64_t leading_lanes[2 * group_block_rows] = {
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

/// All bits of the lanes of vector v of a group that lie below lane `count` of the group, 0 to 32.
HOSTLESS_VECTOR __m256i lanes_below(int count, int v) {
  std::int64_t const* from = leading_lanes + group_block_rows - count + 4 * v;
  return _mm256_loadu_si256(reinterpret_cast<__m256i const*>(from));
}

/// Lanes outside the mask load neither values nor x (either may lie outside its array): both are 0 there.
HOSTLESS_VECTOR void add_partial_diagonal(Diagonal diagonal, double const* value, double const* x,
                                          __m256d* sum) {
  for (int v = 0; v < vectors; ++v) {
    std::uint32_t const mask = diagonal.mask >> (4 * v) & 15u;
    if (mask == 0) continue;
    __m256i const lanes = lanes_of(mask), low = lanes_below(diagonal.split, v);
    __m256d const below = _mm256_maskload_pd(value + diagonal.low + 4 * v, _mm256_and_si256(lanes, low));
    __m256d const above = _mm256_maskload_pd(value + diagonal.high + 4 * v, _mm256_andnot_si256(low, lanes));
    __m256d const xs = _mm256_maskload_pd(x + diagonal.first + 4 * v, lanes);
    sum[v] = _mm256_fmadd_pd(_mm256_or_pd(below, above), xs, sum[v]);
  }
}

/// The 32 values of a diagonal; where they lie in two pieces, put together in `both`.
HOSTLESS_VECTOR double const* values_of(Diagonal diagonal, double const* value, double* both) {
  double const* low = value + diagonal.low;
  if (diagonal.split == group_block_rows) return low;
  double const* high = value + diagonal.high;
  for (int v = 0; v < vectors; ++v) {
    __m256d const mask = _mm256_castsi256_pd(lanes_below(diagonal.split, v));
    __m256d const values =
        _mm256_blendv_pd(_mm256_loadu_pd(high + 4 * v), _mm256_loadu_pd(low + 4 * v), mask);
    _mm256_store_pd(both + 4 * v, values);
  }
  return both;
}

/// One by one: of a loop GCC makes a call that clears memory, 10 times slower.
HOSTLESS_VECTOR void clear_group(__m256d* sum) {
  static_assert(vectors == 8);
  sum[0] = sum[1] = sum[2] = sum[3] = _mm256_setzero_pd();
  sum[4] = sum[5] = sum[6] = sum[7] = _mm256_setzero_pd();
}

HOSTLESS_VECTOR void store_group(__m256d const* sum, int lanes, double* out) {
  if (lanes == group_block_rows) {
    for (int v = 0; v < vectors; ++v) _mm256_storeu_pd(out + 4 * v, sum[v]);
    return;
  }
  alignas(32) double all[group_block_rows];
  for (int v = 0; v < vectors; ++v) _mm256_store_pd(all + 4 * v, sum[v]);
  for (int lane = 0; lane < lanes; ++lane) out[lane] = all[lane];
}

template <bool whole>
HOSTLESS_VECTOR void diagonals(MatrixView const& a, SellGroup const& group, int lanes, double const* x,
                               double* out) {
  __m256d sum[vectors];
  clear_group(sum);
  alignas(32) double both[group_block_rows];
  double const* value = a.value + group.value;
  Diagonal const* diagonal = a.diagonal + group.column;
  for (std::int32_t k = 0; k < group.width; ++k) {
    if (diagonal[k].mirrored == 0) fetch_ahead<group_block_rows * 8>(value + diagonal[k].low);
    if constexpr (whole) {
      double const *values = values_of(diagonal[k], value, both), *xs = x + diagonal[k].first;
      for (int v = 0; v < vectors; ++v) {
        sum[v] = _mm256_fmadd_pd(_mm256_loadu_pd(values + 4 * v), _mm256_loadu_pd(xs + 4 * v), sum[v]);
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
    clear_group(sum);
    for (std::int64_t k = 0; k < group.width; ++k) {
      std::int64_t const at = (k * b + j) * group_block_rows;
      double const* value = a.value + group.value + at;
      fetch_ahead<group_block_rows * 8>(value);
      for (int v = 0; v < vectors; ++v) {
        sum[v] = _mm256_fmadd_pd(_mm256_load_pd(value + 4 * v), four_of(x, column, at + 4 * v), sum[v]);
      }
    }
    if (b == 1) {
      store_group(sum, lanes, out);
    } else {
      double row[group_block_rows];
      store_group(sum, group_block_rows, row);
      for (int lane = 0; lane < lanes; ++lane) out[lane * b + j] = row[lane];
    }
  }
}

template <int b>
HOSTLESS_VECTOR void sell(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows,
                          double const* x, double* out) {
  SellGroup const* group =
      a.group + a.first_group[s] + (first_block_row - a.tiling.first(s)) / group_block_rows;
  SliceStart const& slice = a.slice[s];
  for (int block_row = 0; block_row < block_rows; block_row += group_block_rows, ++group) {
    int const lanes = block_rows - block_row < group_block_rows ? block_rows - block_row : group_block_rows;
    if (group->kind == SellGroup::Kind::diagonals) {
      diagonals<true>(a, *group, lanes, x, out + block_row);
    } else if (group->kind == SellGroup::Kind::masked) {
      diagonals<false>(a, *group, lanes, x, out + block_row);
    } else if (slice.wide != 0) {
      listed<b>(a, *group, lanes, Columns<std::int32_t>{a.wide + group->column, 0}, x, out + block_row * b);
    } else {
      listed<b>(a, *group, lanes, Columns<std::uint16_t>{a.narrow + group->column, slice.base}, x,
                out + block_row * b);
    }
  }
}

}  // namespace hostless::avx2

#else
namespace hostless::avx2 {  // other processors: the compiler's own vectors
using namespace scalar;
}
#endif
