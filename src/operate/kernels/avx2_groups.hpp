#pragma once
// Sliced ELL: groups of 32 block rows, as diagonals or listed.

#include "operate/kernels/avx2_vector.hpp"
#include "operate/kernels/scalar.hpp"

namespace hostless::avx2 {

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

/// Whether values of a diagonal come from memory or the third cache: those of the other triangle that lie further before
/// the group than a second cache reaches, with all that was read meanwhile, do so again.
constexpr std::int32_t far_before = 32768;  // values
HOSTLESS_VECTOR bool is_far(Diagonal const& diagonal) {
  return diagonal.mirrored == 0 || diagonal.low < -far_before;
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
    if (is_far(diagonal[k])) fetch_ahead<group_block_rows * 8>(value + diagonal[k].low);
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
