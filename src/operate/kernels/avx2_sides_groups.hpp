#pragma once
// Sliced ELL of several right-hand sides.

#include "operate/kernels/avx2_groups.hpp"
#include "operate/kernels/avx2_sides.hpp"

namespace hostless::avx2 {

/// Diagonals need no gathering, so the sides stay apart (from a window they take a tenth longer): a quarter
/// of the group after the other, as many sums as registers hold.
///
/// x of a diagonal that is far from the one before is fetched: as many streams as the diagonals of all sides are, the
/// processor does not follow. On AMD's cores into the second cache, and early (two threads of a Zen 4, a model of the
/// sweep of four sides of 7-point 128^3, a column: 5.8 to 5.0 ms); the first cache would lose what comes so early.
/// On Intel's for the group after the next into both (Emerald Rapids, the same sweep: 21 to 18 ms; 256 rows ahead
/// nothing is gained; on a Zen 5 fetching the farthest of near ones alone takes a twentieth longer).
constexpr int x_ahead = 2 * group_block_rows, x_far_ahead = 2 * Tiling::accumulators;
HOSTLESS_VECTOR void fetch_x_ahead(double const* x) {
  if (is_intel) {
    fetch_into_both<group_block_rows * 8>(ahead_of(x, x_ahead * 8));
  } else {
    fetch_into_second<group_block_rows * 8>(ahead_of(x, x_far_ahead * 8));
  }
}
/// Values of diagonal k, and x along it, for groups to come.
template <int W>
HOSTLESS_VECTOR void fetch_diagonal(Diagonal const* diagonal, std::int32_t k, double const* value,
                                    RightHandSides const& of) {
  if (is_far(diagonal[k])) fetch_ahead<group_block_rows * 8>(value + diagonal[k].low);
  if (k > 0 && diagonal[k].first - diagonal[k - 1].first <= x_ahead) return;
  HOSTLESS_UNROLLED
  for (int w = 0; w < W; ++w) fetch_x_ahead(of.x[w] + diagonal[k].first);
}

template <int W>
HOSTLESS_VECTOR void whole_diagonals(MatrixView const& a, SellGroup const& group, int lanes, int at_out,
                                     RightHandSides const& of) {
  constexpr int together = 2;
  Diagonal const* diagonal = a.diagonal + group.column;
  double const* value = a.value + group.value;
  alignas(32) double all[W][group_block_rows];
  for (int first = 0; first < vectors; first += together) {
    __m256d sum[W][together];
    HOSTLESS_UNROLLED
    for (int w = 0; w < W; ++w) sum[w][0] = sum[w][1] = _mm256_setzero_pd();
    for (std::int32_t k = 0; k < group.width; ++k) {
      Diagonal const& one = diagonal[k];
      if (first == 0) fetch_diagonal<W>(diagonal, k, value, of);
      __m256d entry[together];
      for (int u = 0; u < together; ++u) {
        int const v = first + u;
        entry[u] = _mm256_loadu_pd(value + one.low + 4 * v);
        if (one.split != group_block_rows)
          entry[u] = _mm256_blendv_pd(_mm256_loadu_pd(value + one.high + 4 * v), entry[u],
                                      _mm256_castsi256_pd(lanes_below(one.split, v)));
      }
      HOSTLESS_UNROLLED
      for (int w = 0; w < W; ++w) {
        double const* const xs = of.x[w] + one.first + 4 * first;
        sum[w][0] = _mm256_fmadd_pd(entry[0], _mm256_loadu_pd(xs), sum[w][0]);
        sum[w][1] = _mm256_fmadd_pd(entry[1], _mm256_loadu_pd(xs + 4), sum[w][1]);
      }
    }
    HOSTLESS_UNROLLED
    for (int w = 0; w < W; ++w) {
      double* const to = lanes == group_block_rows ? of.out[w] + at_out : all[w];
      _mm256_storeu_pd(to + 4 * first, sum[w][0]);
      _mm256_storeu_pd(to + 4 * first + 4, sum[w][1]);
    }
  }
  if (lanes == group_block_rows) return;
  for (int w = 0; w < W; ++w)
    for (int lane = 0; lane < lanes; ++lane) of.out[w][at_out + lane] = all[w][lane];
}

/// Four rows after the other.
template <int b, class From, class Column>
HOSTLESS_VECTOR void listed_of_sides(MatrixView const& a, SellGroup const& group, int lanes, Column column,
                                     From const& from, int at_out, RightHandSides const& of) {
  constexpr int together = 4;
  alignas(32) double sums[together * sides];
  for (int j = 0; j < b; ++j) {
    for (int lane = 0; lane < lanes; lane += together) {
      __m256d sum[together];
      HOSTLESS_UNROLLED
      for (int i = 0; i < together; ++i) sum[i] = _mm256_setzero_pd();
      for (std::int64_t k = 0; k < group.width; ++k) {
        std::int64_t const at = (k * b + j) * group_block_rows + lane;
        double const* const value = a.value + group.value + at;
        if (lane == 0) fetch_ahead<group_block_rows * 8>(value);
        HOSTLESS_UNROLLED
        for (int i = 0; i < together; ++i)
          sum[i] =
              _mm256_fmadd_pd(_mm256_broadcast_sd(value + i), from.row(from.at(column[at + i]), 0), sum[i]);
      }
      HOSTLESS_UNROLLED
      for (int i = 0; i < together; ++i) _mm256_store_pd(sums + i * sides, sum[i]);
      int const left = lanes - lane < together ? lanes - lane : together;
      if (b == 1) {
        store_rows(sums, left, of, at_out + lane);
      } else {
        for (int i = 0; i < left; ++i) store_rows(sums + i * sides, 1, of, at_out + (lane + i) * b + j);
      }
    }
  }
}
template <int b, class From>
HOSTLESS_VECTOR void listed_from(MatrixView const& a, SliceStart const& slice, SellGroup const& group,
                                 int lanes, From const& from, int at_out, RightHandSides const& of) {
  if (slice.wide != 0) {
    listed_of_sides<b>(a, group, lanes, Columns<std::int32_t>{a.wide + group.column, 0}, from, at_out, of);
  } else {
    listed_of_sides<b>(a, group, lanes, Columns<std::uint16_t>{a.narrow + group.column, slice.base}, from,
                       at_out, of);
  }
}

/// Of a group that is not in whole diagonals.
template <int b>
HOSTLESS_VECTOR void other_group_of_sides(MatrixView const& a, int s, SellGroup const& group, int lanes,
                                          bool is_near, int block_row, RightHandSides const& of) {
  if (group.kind == SellGroup::Kind::masked) {
    for (int w = 0; w < of.count; ++w) diagonals<false>(a, group, lanes, of.x[w], of.out[w] + block_row);
  } else if (is_near) {
    listed_from<b>(a, a.slice[s], group, lanes, FromWindow<1>{of.window->values, of.window->size - 1},
                   block_row * b, of);
  } else {
    listed_from<b>(a, a.slice[s], group, lanes, FromVectors<1>{of.x}, block_row * b, of);
  }
}

#define HOSTLESS_SIDES_VECTOR HOSTLESS_VECTOR
#include "operate/kernels/sides_groups.impl.hpp"

}  // namespace hostless::avx2
