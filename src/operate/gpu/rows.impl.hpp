#pragma once
// Products of a batch of block rows, one block row a thread: loads of all block rows of the batch are
// independent of each other and of the sums, so that they are in flight together. Bytes a row: those of the
// format; x from L1 and L2.

#include <type_traits>

#include "device/runtime.hpp"
#include "hostless/base/order.hpp"
#include "operate/device_rows.hpp"
#include "operate/gpu/wide.impl.hpp"

namespace hostless::gpu {

/// S block rows of one accumulator, 256 apart.
template <int S>
struct Batch {
  int slice;
  std::int32_t slot;         ///< of the first
  std::int32_t accumulator;  ///< in the slice
  std::int32_t first, last;  ///< block rows of the slice
  HOSTLESS_HOST_DEVICE std::int32_t block_row(int s) const {
    return first + (slot + s) * Tiling::accumulators + accumulator;
  }
  HOSTLESS_HOST_DEVICE bool valid(int s) const { return block_row(s) < last; }
};
/// One all of whose block rows are valid. Without branches in between loads are in flight together, and what
/// a body overwrites everywhere is not loaded.
template <int S>
struct FullBatch : Batch<S> {
  HOSTLESS_HOST_DEVICE static constexpr bool valid(int) { return true; }
};

/// The stored values of a layout: the matrix's, or (Value = float) rounded ones. Products are fp64 either
/// way.
template <class Value, class View>
HOSTLESS_HOST_DEVICE Value const* values_of(View const& a) {
  if constexpr (std::is_same_v<Value, float>) {
    return a.rounded;
  } else {
    return a.value;
  }
}

/// sum += block * x, or the transposed block; the block's entries are `stride` values apart.
template <int B, bool transposed, class Value, class X>
HOSTLESS_HOST_DEVICE void add_block(Value const* value, X const& x, Sum<X> (&sum)[B],
                                    std::int32_t stride = tile_block_rows) {
  Value entry[B * B];
  Sum<X> at[B];
  HOSTLESS_UNROLL
  for (int e = 0; e < B * B; ++e) entry[e] = load_once(value + e * stride);
  HOSTLESS_UNROLL
  for (int c = 0; c < B; ++c) at[c] = x[c];
  HOSTLESS_UNROLL
  for (int c = 0; c < B; ++c) {
    HOSTLESS_UNROLL
    for (int j = 0; j < B; ++j)
      sum[j] = add_product(static_cast<double>(entry[transposed ? j * B + c : c * B + j]), at[c], sum[j]);
  }
}

/// Of the diagonals that are multiplied together those, up to `end`, that lie so near that what is read of them for one
/// triangle is soon read for the other.
struct Near {
  int begin = 0, end = 0;
};

/// N diagonals of the whole batch from `first` on.
template <int B, int S, int N, bool mirrored, class Value, Near near = Near{}, class X>
HOSTLESS_HOST_DEVICE void add_diagonals(DiagonalsView const& a, Batch<S> const& batch, int first, X const& x,
                                        Sum<X> (&sum)[S][B]) {
  HOSTLESS_UNROLL
  for (int n = 0; n < N; ++n) {
    std::int32_t const block_row = batch.block_row(0), there = block_row + a.offset[first + n];
    std::int32_t const from = mirrored ? there : block_row;
    X const at = x + static_cast<std::int64_t>(there) * B;
    if constexpr (B == 1) {
      Value const* const value = values_of<Value>(a) + a.plane[first + n] * a.stride + from;
      HOSTLESS_UNROLL
      for (int s = 0; s < S; ++s)
        sum[s][0] = add_product(static_cast<double>(n >= near.begin && n < near.end
                                                        ? load_constant(value + s * Tiling::accumulators)
                                                        : load_once(value + s * Tiling::accumulators)),
                                at[s * Tiling::accumulators], sum[s][0]);
    } else {
      Value const* const value =
          values_of<Value>(a) +
          (static_cast<std::int64_t>(from >> 5) * a.planes + a.plane[first + n]) * tile_block_rows +
          (from & 31);
      HOSTLESS_UNROLL
      for (int s = 0; s < S; ++s)  // 256 block rows are 8 tiles
        add_block<B, mirrored>(value + static_cast<std::int64_t>(s) * Tiling::accumulators * a.planes,
                               at + static_cast<std::int64_t>(s) * Tiling::accumulators * B, sum[s]);
    }
  }
}

template <class Value, int B, int S, class X>
HOSTLESS_HOST_DEVICE void multiply_diagonals(DiagonalsView const& a, Batch<S> const& batch, X const& x,
                                             Sum<X> (&sum)[S][B]) {
  static_assert(tile_block_rows == 32);
  if constexpr (B == 1) {  // the usual stencils: all loads of a batch at once
    if (a.mirrored == 2 && a.count == 5) {
      add_diagonals<B, S, 2, true, Value>(a, batch, 0, x, sum);
      return add_diagonals<B, S, 3, false, Value>(a, batch, 2, x, sum);
    }
    if (a.mirrored == 3 && a.count == 7) {
      // several right-hand sides are bound by the second-level cache, and one alone leaves the first to its x
      constexpr Near nearest = width_of(X{}) > 1 ? Near{1, 3} : Near{};  // of either triangle
      add_diagonals<B, S, 3, true, Value, nearest>(a, batch, 0, x, sum);
      return add_diagonals<B, S, 4, false, Value, nearest>(a, batch, 3, x, sum);
    }
  }
  constexpr int together = B == 1 ? 4 : B <= 3 ? 3 : 1;
  int d = 0;
  for (; d + together <= a.mirrored; d += together)
    add_diagonals<B, S, together, true, Value>(a, batch, d, x, sum);
  for (; together > 1 && d < a.mirrored; ++d) add_diagonals<B, S, 1, true, Value>(a, batch, d, x, sum);
  for (; d + together <= a.count; d += together)
    add_diagonals<B, S, together, false, Value>(a, batch, d, x, sum);
  for (; together > 1 && d < a.count; ++d) add_diagonals<B, S, 1, false, Value>(a, batch, d, x, sum);
}

/// Blocks of one block row that are loaded together.
template <int B>
constexpr int blocks_together = B == 1   ? 8
                                : B == 2 ? 4
                                : B == 3 ? 3
                                         : 1;

/// The first `head` blocks, which all 32 block rows have.
template <int B, class Value, class Column, class X>
HOSTLESS_HOST_DEVICE void add_head(Value const* value, Column const* column, DeviceGroup const& group,
                                   std::int32_t lane, X const& x, Sum<X> (&sum)[B]) {
  constexpr int unrolled = blocks_together<B>;
  value += lane;
  column += lane;
  std::int32_t k = 0;
  for (; k + unrolled <= group.head; k += unrolled) {
    std::int32_t at[unrolled];
    HOSTLESS_UNROLL
    for (int u = 0; u < unrolled; ++u)
      at[u] = group.base + static_cast<std::int32_t>(load_constant(column + (k + u) * tile_block_rows));
    HOSTLESS_UNROLL
    for (int u = 0; u < unrolled; ++u) {
      add_block<B, false>(value + static_cast<std::int64_t>(k + u) * (B * B * tile_block_rows),
                          x + static_cast<std::int64_t>(at[u]) * B, sum);
    }
  }
  for (; unrolled > 1 && k < group.head; ++k) {
    std::int32_t const at =
        group.base + static_cast<std::int32_t>(load_constant(column + k * tile_block_rows));
    add_block<B, false>(value + static_cast<std::int64_t>(k) * (B * B * tile_block_rows),
                        x + static_cast<std::int64_t>(at) * B, sum);
  }
}

/// N blocks of the tail, if this block row has all of them; `value` and `column` begin with the first and
/// move on.
template <int B, int N, class Value, class Column, class X>
HOSTLESS_HOST_DEVICE bool add_tail(Value const*& value, Column const*& column, std::uint32_t const* mask,
                                   std::int32_t base, std::int32_t lane, X const& x, Sum<X> (&sum)[B]) {
  std::uint32_t here[N];
  HOSTLESS_UNROLL
  for (int n = 0; n < N; ++n) here[n] = load_constant(mask + n);
  if ((here[N - 1] >> lane & 1u) == 0) return false;
  std::uint32_t const below = (1u << lane) - 1;
  HOSTLESS_UNROLL
  for (int n = 0; n < N; ++n) {
    std::int32_t const stride = __builtin_popcount(here[n]), rank = __builtin_popcount(here[n] & below);
    std::int32_t const at = base + static_cast<std::int32_t>(load_constant(column + rank));
    add_block<B, false>(value + rank, x + static_cast<std::int64_t>(at) * B, sum, stride);
    value += stride * (B * B);
    column += stride;
  }
  return true;
}

/// The row sums of one block row of a group.
template <int B, class Value, class Column, class X>
HOSTLESS_HOST_DEVICE void add_group(Value const* value, Column const* column, std::uint32_t const* mask,
                                    DeviceGroup const& group, std::int32_t lane, X const& x,
                                    Sum<X> (&sum)[B]) {
  std::int32_t k = group.head;
  mask += group.mask;
  if (k < group.width) prefetch(mask);  // while the head is multiplied
  add_head<B>(value, column, group, lane, x, sum);
  if (k == group.width) return;
  value += static_cast<std::int64_t>(k) * (B * B * tile_block_rows);
  column += k * tile_block_rows;
  constexpr int together = blocks_together<B>;
  for (; k + together <= group.width; k += together, mask += together)
    if (!add_tail<B, together>(value, column, mask, group.base, lane, x, sum)) break;
  for (; together > 1 && k < group.width; ++k, ++mask)
    if (!add_tail<B, 1>(value, column, mask, group.base, lane, x, sum)) break;
}

template <class Value, int B, int S, class X>
HOSTLESS_HOST_DEVICE void multiply_sell(SellView const& a, Batch<S> const& batch, X const& x,
                                        Sum<X> (&sum)[S][B]) {
  constexpr int groups = Tiling::accumulators / tile_block_rows;
  HOSTLESS_UNROLL
  for (int s = 0; s < S; ++s) {
    if (!batch.valid(s)) continue;
    DeviceGroup const& group = a.group[load_constant(a.first_group + batch.slice) +
                                       (batch.slot + s) * groups + batch.accumulator / tile_block_rows];
    if (batch.valid(s + S)) prefetch(&group + S * groups);
    std::int32_t const lane = batch.accumulator % tile_block_rows;
    Value const* const value = values_of<Value>(a) + group.value;
    if (group.wide != 0) {
      add_group<B>(value, a.wide + group.column, a.mask, group, lane, x, sum[s]);
    } else {
      add_group<B>(value, a.narrow + group.column, a.mask, group, lane, x, sum[s]);
    }
  }
}

template <class Value, int B, int S, class X>
HOSTLESS_HOST_DEVICE void multiply_csr(CsrView const& a, Batch<S> const& batch, X const& x,
                                       Sum<X> (&sum)[S][B]) {
  HOSTLESS_UNROLL
  for (int s = 0; s < S; ++s) {
    if (!batch.valid(s)) continue;
    HOSTLESS_UNROLL
    for (int j = 0; j < B; ++j) {
      std::int64_t const row = static_cast<std::int64_t>(batch.block_row(s)) * B + j;
      std::int64_t const end = load_constant(a.start + row + 1);
      Sum<X> t;
      set_zero(t);
      HOSTLESS_UNROLL_BY_4
      for (std::int64_t k = load_constant(a.start + row); k < end; ++k)
        t = add_product(static_cast<double>(load_constant(values_of<Value>(a) + k)),
                        x[load_constant(a.column + k)], t);
      sum[s][j] = t;
    }
  }
}

template <int B, int S>
HOSTLESS_HOST_DEVICE void load_products(double const* ready, Batch<S> const& batch, double (&sum)[S][B]) {
  HOSTLESS_UNROLL
  for (int s = 0; s < S; ++s) {
    if (!batch.valid(s)) continue;
    HOSTLESS_UNROLL
    for (int j = 0; j < B; ++j) sum[s][j] = ready[static_cast<std::int64_t>(batch.block_row(s)) * B + j];
  }
}

/// Products first, first + w, ... of a row that ends before `end`: one of its w accumulators.
template <class Value, class X>
HOSTLESS_HOST_DEVICE Sum<X> accumulate(CsrView const& a, std::int64_t first, std::int64_t end, int w,
                                       X const& x) {
  Sum<X> t;
  set_zero(t);
  HOSTLESS_UNROLL_BY_4
  for (std::int64_t k = first; k < end; k += w)
    t = add_product(static_cast<double>(load_constant(values_of<Value>(a) + k)),
                    x[load_constant(a.column + k)], t);
  return t;
}

/// Who forms the w accumulators of a row: here one thread all of those of its own rows. On a GPU w neighbours
/// share the rows of all of them, in turn (SharedRows, operate/gpu/tree.gpu.hpp).
struct RowsApart {
  int w;
  HOSTLESS_HOST_DEVICE RowsApart(int accumulators, std::int32_t) : w(accumulators) {}
  HOSTLESS_HOST_DEVICE int turns() const { return 1; }
  HOSTLESS_HOST_DEVICE int distance(int) const { return 0; }  ///< lanes to the owner of the rows of a turn
  template <class Accumulator>
  HOSTLESS_HOST_DEVICE double add(Accumulator const& accumulator) const {
    double t[Tiling::most_threads_per_row];
    for (int k = 0; k < w; ++k) t[k] = accumulator(k);
    return tree(t, w);
  }
};

/// CSR with several accumulators a row. All threads of a group go along, those without a block row too.
template <class Value, class Sharing, int B, int S, class X>
HOSTLESS_HOST_DEVICE void multiply_shared_csr(CsrView const& a, Batch<S> const& batch, X const& x,
                                              Sum<X> (&sum)[S][B]) {
  Sharing const sharing(a.threads_per_row, batch.accumulator);
  HOSTLESS_UNROLL
  for (int s = 0; s < S; ++s) {
    for (int turn = 0; turn < sharing.turns(); ++turn) {
      std::int32_t const block_row = batch.block_row(s) + sharing.distance(turn);
      bool const valid = block_row < batch.last;
      HOSTLESS_UNROLL
      for (int j = 0; j < B; ++j) {
        std::int64_t const row = static_cast<std::int64_t>(block_row) * B + j;
        std::int64_t const first = valid ? load_constant(a.start + row) : 0;
        std::int64_t const end = valid ? load_constant(a.start + row + 1) : 0;
        HOSTLESS_UNROLL
        for (int c = 0; c < width_of(X{}); ++c) {
          double const t = sharing.add([&](int k) {
            return accumulate<Value>(a, first + k, end, a.threads_per_row, column_of(x, c));
          });
          if (sharing.distance(turn) == 0) column_of(sum[s][j], c) = t;
        }
      }
    }
  }
}

/// sum[s] = (A x)[rows of block row s of the batch]; of block rows that are not valid, anything. Value float:
/// A rounded.
template <int B, int S, class Value = double, class Sharing = RowsApart, class X = double const*>
HOSTLESS_LONG void multiply(RowsView const& a, Batch<S> const& batch, X const& x, Sum<X> (&sum)[S][B]) {
  HOSTLESS_UNROLL
  for (int s = 0; s < S; ++s) {
    HOSTLESS_UNROLL
    for (int j = 0; j < B; ++j) set_zero(sum[s][j]);
  }
  switch (a.format) {
    case DeviceFormat::diagonals:
      return multiply_diagonals<Value, B>(a.diagonals, batch, x, sum);
    case DeviceFormat::sell:
      return multiply_sell<Value, B>(a.sell, batch, x, sum);
    case DeviceFormat::csr:
      if (a.csr.threads_per_row > 1) return multiply_shared_csr<Value, Sharing>(a.csr, batch, x, sum);
      return multiply_csr<Value, B>(a.csr, batch, x, sum);
    case DeviceFormat::merge:
    case DeviceFormat::vendor:
      if constexpr (width_of(X{}) == 1) return load_products<B>(a.ready, batch, sum);
      return;  // which are not made for several right-hand sides
  }
}

/// The same with the matrix that a kernel's phase multiplies with; `is_rounded` matters to kernels with Inner
/// float, which have both.
template <int B, int S, class Inner, class Sharing = RowsApart, class X>
HOSTLESS_HOST_DEVICE void multiply(RowsView const& a, bool is_rounded, Batch<S> const& batch, X const& x,
                                   Sum<X> (&sum)[S][B]) {
  if constexpr (std::is_same_v<Inner, float>) {
    if (is_rounded) return multiply<B, S, float, Sharing>(a, batch, x, sum);
  }
  multiply<B, S, double, Sharing>(a, batch, x, sum);
}

}  // namespace hostless::gpu
