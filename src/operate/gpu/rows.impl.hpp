#pragma once
// Products of a batch of leaves, one leaf a thread: loads of all leaves of the batch are independent of each
// other and of the sums, so that they are in flight together. Bytes a row: those of the format; x from L1 and
// L2.

#include "device/runtime.hpp"
#include "operate/device_rows.hpp"

namespace hostless::gpu {

/// S leaves of one lane, 256 apart.
template <int S>
struct Batch {
  int slice;
  std::int32_t slot;         ///< of the first
  std::int32_t lane;         ///< in the slice
  std::int32_t first, last;  ///< leaves of the slice
  HOSTLESS_ANYWHERE std::int32_t leaf(int s) const { return first + (slot + s) * Tiling::lanes + lane; }
  HOSTLESS_ANYWHERE bool valid(int s) const { return leaf(s) < last; }
  /// A leaf that exists, for loads.
  HOSTLESS_ANYWHERE std::int32_t safe(int s) const { return valid(s) ? leaf(s) : last - 1; }
};

/// sum += block * x, the block's entry (j, c) at value[(transposed ? j * B + c : c * B + j) * 32].
template <int B, bool transposed>
HOSTLESS_ANYWHERE void add_block(double const* value, double const* x, bool exists, double (&sum)[B]) {
  double entry[B * B], at[B];
  HOSTLESS_UNROLL
  for (int k = 0; k < B * B; ++k) entry[k] = load_constant(value + k * tile_leaves);
  HOSTLESS_UNROLL
  for (int c = 0; c < B; ++c) at[c] = x[c];
  HOSTLESS_UNROLL
  for (int c = 0; c < B; ++c) {
    HOSTLESS_UNROLL
    for (int j = 0; j < B; ++j) {
      double const added = __builtin_fma(entry[transposed ? j * B + c : c * B + j], at[c], sum[j]);
      sum[j] = exists ? added : sum[j];
    }
  }
}

/// One diagonal of the whole batch. `inside`: every leaf of the batch has a leaf there; else it is asked for,
/// without a branch: what does not exist is loaded from the leaf itself and not added.
template <int B, int S, bool mirrored, bool inside>
HOSTLESS_ANYWHERE void add_diagonal(DiagonalsView const& a, std::int32_t leaves, Batch<S> const& batch,
                                    std::int32_t offset, std::int32_t plane, double const* x,
                                    double (&sum)[S][B]) {
  HOSTLESS_UNROLL
  for (int s = 0; s < S; ++s) {
    std::int32_t const leaf = batch.safe(s), there = leaf + offset;
    bool const exists = inside || static_cast<std::uint32_t>(there) < static_cast<std::uint32_t>(leaves);
    std::int32_t const column = exists ? there : leaf;
    std::int32_t const from = mirrored ? column : leaf;
    std::int64_t const tile = static_cast<std::int64_t>(from / tile_leaves) * a.planes + plane;
    add_block<B, mirrored>(a.value + tile * tile_leaves + from % tile_leaves,
                           x + static_cast<std::int64_t>(column) * B, exists, sum[s]);
  }
}

template <int B, int S, int N, bool inside>
HOSTLESS_ANYWHERE void add_diagonals(DiagonalsView const& a, std::int32_t leaves, Batch<S> const& batch,
                                     double const* x, double (&sum)[S][B]) {
  if constexpr (N > 0) {  // so many, half of them mirrored: all loads of a batch at once
    HOSTLESS_UNROLL
    for (int d = 0; d < N; ++d) {
      if (d < N / 2) {
        add_diagonal<B, S, true, inside>(a, leaves, batch, a.offset[d], a.plane[d], x, sum);
      } else {
        add_diagonal<B, S, false, inside>(a, leaves, batch, a.offset[d], a.plane[d], x, sum);
      }
    }
  } else {
    for (int d = 0; d < a.mirrored; ++d)
      add_diagonal<B, S, true, inside>(a, leaves, batch, a.offset[d], a.plane[d], x, sum);
    for (int d = a.mirrored; d < a.count; ++d)
      add_diagonal<B, S, false, inside>(a, leaves, batch, a.offset[d], a.plane[d], x, sum);
  }
}

template <int B, int S, bool inside>
HOSTLESS_ANYWHERE void choose_diagonals(DiagonalsView const& a, std::int32_t leaves, Batch<S> const& batch,
                                        double const* x, double (&sum)[S][B]) {
  if constexpr (B == 1) {
    if (a.mirrored * 2 + 1 == a.count) {
      switch (a.count) {
        case 3:
          return add_diagonals<B, S, 3, inside>(a, leaves, batch, x, sum);
        case 5:
          return add_diagonals<B, S, 5, inside>(a, leaves, batch, x, sum);
        case 7:
          return add_diagonals<B, S, 7, inside>(a, leaves, batch, x, sum);
        default:
          break;
      }
    }
  }
  add_diagonals<B, S, 0, inside>(a, leaves, batch, x, sum);
}

template <int B, int S>
HOSTLESS_ANYWHERE void multiply_diagonals(DiagonalsView const& a, std::int32_t leaves, Batch<S> const& batch,
                                          double const* x, double (&sum)[S][B]) {
  if (B == 1 && batch.first + a.lowest >= 0 && batch.last - 1 + a.highest < leaves) {
    choose_diagonals<B, S, true>(a, leaves, batch, x, sum);
  } else {  // a question for a block costs nothing
    choose_diagonals<B, S, false>(a, leaves, batch, x, sum);
  }
}

template <int B, class Column>
HOSTLESS_ANYWHERE void add_group(double const* value, Column const* column, std::int32_t base,
                                 std::int32_t width, double const* x, double (&sum)[B]) {
  constexpr int unrolled = B == 1 ? 8 : B == 2 ? 2 : 1;
  std::int32_t k = 0;
  for (; k + unrolled <= width; k += unrolled) {
    std::int32_t at[unrolled];
    HOSTLESS_UNROLL
    for (int u = 0; u < unrolled; ++u)
      at[u] = base + static_cast<std::int32_t>(load_constant(column + (k + u) * tile_leaves));
    HOSTLESS_UNROLL
    for (int u = 0; u < unrolled; ++u) {
      add_block<B, false>(value + static_cast<std::int64_t>(k + u) * (B * B * tile_leaves),
                          x + static_cast<std::int64_t>(at[u]) * B, true, sum);
    }
  }
  for (; k < width; ++k) {
    std::int32_t const at = base + static_cast<std::int32_t>(load_constant(column + k * tile_leaves));
    add_block<B, false>(value + static_cast<std::int64_t>(k) * (B * B * tile_leaves),
                        x + static_cast<std::int64_t>(at) * B, true, sum);
  }
}

template <int B, int S>
HOSTLESS_ANYWHERE void multiply_sell(SellView const& a, Batch<S> const& batch, double const* x,
                                     double (&sum)[S][B]) {
  constexpr int groups = Tiling::lanes / tile_leaves;
  HOSTLESS_UNROLL
  for (int s = 0; s < S; ++s) {
    if (!batch.valid(s)) continue;
    std::int32_t const lane = batch.lane % tile_leaves;
    DeviceGroup const& group = a.group[load_constant(a.first_group + batch.slice) +
                                       (batch.slot + s) * groups + batch.lane / tile_leaves];
    double const* const value = a.value + group.value + lane;
    if (group.wide != 0) {
      add_group<B>(value, a.wide + group.column + lane, 0, group.width, x, sum[s]);
    } else {
      add_group<B>(value, a.narrow + group.column + lane, group.base, group.width, x, sum[s]);
    }
  }
}

template <int B, int S>
HOSTLESS_ANYWHERE void multiply_csr(CsrView const& a, Batch<S> const& batch, double const* x,
                                    double (&sum)[S][B]) {
  HOSTLESS_UNROLL
  for (int s = 0; s < S; ++s) {
    if (!batch.valid(s)) continue;
    HOSTLESS_UNROLL
    for (int j = 0; j < B; ++j) {
      std::int64_t const row = static_cast<std::int64_t>(batch.leaf(s)) * B + j;
      std::int64_t const end = load_constant(a.start + row + 1);
      double t = 0.0;
      HOSTLESS_UNROLL_BY_4
      for (std::int64_t k = load_constant(a.start + row); k < end; ++k)
        t = __builtin_fma(load_constant(a.value + k), x[load_constant(a.column + k)], t);
      sum[s][j] = t;
    }
  }
}

/// sum[s] = (A x)[rows of leaf s of the batch]; of leaves that are not valid, anything.
template <int B, int S>
HOSTLESS_ANYWHERE void multiply(RowsView const& a, Batch<S> const& batch, double const* x,
                                double (&sum)[S][B]) {
  HOSTLESS_UNROLL
  for (int s = 0; s < S; ++s) {
    HOSTLESS_UNROLL
    for (int j = 0; j < B; ++j) sum[s][j] = 0.0;
  }
  switch (a.format) {
    case DeviceFormat::diagonals:
      return multiply_diagonals<B>(a.diagonals, static_cast<std::int32_t>(a.tiling.leaves), batch, x, sum);
    case DeviceFormat::sell:
      return multiply_sell<B>(a.sell, batch, x, sum);
    case DeviceFormat::csr:
      return multiply_csr<B>(a.csr, batch, x, sum);
  }
}

}  // namespace hostless::gpu
