#pragma once
// Where a field lives on a GPU, and how a phase works on it: a batch of block rows is loaded into registers,
// the body works there, and what it may have changed is written back. All loads of a batch are in flight
// together.

#include "device/runtime.hpp"
#include "hostless/run/state.hpp"
#include "hostless/run/views.hpp"
#include "operate/gpu/rows.impl.hpp"
#include "operate/gpu/tree.gpu.hpp"
#include "run/gpu/launch.hpp"

namespace hostless::gpu {

/// Block rows of one accumulator that a phase has in flight.
template <int B>
constexpr int batch_block_rows = B == 1   ? 4
                                 : B == 2 ? 2
                                          : 1;

/// The dynamic shared memory of a block, by its name: the compiler then knows where it is.
__device__ __forceinline__ double* pool() {
  extern __shared__ double hostless_pool[];
  return hostless_pool;
}

/// A field in memory whose first `on_chip` slots of every accumulator live in shared memory instead.
///
/// Slots count through the turns of a block. Shared memory holds row j of slot n of a thread at
/// shared + (n * B + j) * block_threads + thread: no bank conflicts.
struct Field {
  double* memory = nullptr;  ///< [rows], padded: accumulators without a block row may load there
  int shared = 0;            ///< in the pool
  int on_chip = 0;
  bool through = false;  ///< what is shown goes to memory too
  /// A gathered field whose own rows are in the block's window too: row r at pool()[window + r].
  bool windowed = false;
  int window = 0;
};
/// A field of which the body changes nothing.
struct ReadOnly {
  Field field;
};
HOSTLESS_HOST_DEVICE ReadOnly reads(Field field) { return {field}; }

/// A field that is written to memory too, where neighbours form what they read.
struct HaloSource {
  Field field;
};
HOSTLESS_HOST_DEVICE HaloSource halo_source(Field field) { return {field}; }

template <class View>
struct ViewTraits {
  static constexpr bool writes = true, halo_source = false;
  HOSTLESS_HOST_DEVICE static Field field(View view) { return view; }
};
template <>
struct ViewTraits<HaloSource> {
  static constexpr bool writes = true, halo_source = true;
  HOSTLESS_HOST_DEVICE static Field field(HaloSource view) { return view.field; }
};
template <>
struct ViewTraits<ReadOnly> {
  static constexpr bool writes = false, halo_source = false;
  HOSTLESS_HOST_DEVICE static Field field(ReadOnly view) { return view.field; }
};

/// The batch's part of one field, in registers. `slot` of a block row is its number in the batch.
template <int B, int S>
struct Staged {
  mutable double value[S][B];

  __device__ __forceinline__ double& operator()(BlockRow<B> block_row, int j) const {
    return value[block_row.slot][j];
  }

  template <class View, class SomeBatch>
  __device__ __forceinline__ Staged(View view, SomeBatch const& batch, int first_slot) {
    Field const field = ViewTraits<View>::field(view);
    if (first_slot < field.on_chip) {
      double const* const from = on_chip(field, first_slot);
      HOSTLESS_UNROLL
      for (int k = 0; k < S * B; ++k)
        value[k / B][k % B] = S == 1 || batch.valid(k / B) ? from[k * block_threads] : 0.0;
    } else if (field.windowed) {  // accumulators without a block row would reach beyond it
      double const* const from = in_window(field, batch);
      HOSTLESS_UNROLL
      for (int k = 0; k < S * B; ++k)
        value[k / B][k % B] = batch.valid(k / B) ? from[k / B * (B * Tiling::accumulators) + k % B] : 0.0;
    } else {
      double const* const from = far(field, batch);
      HOSTLESS_UNROLL
      for (int k = 0; k < S * B; ++k) value[k / B][k % B] = from[k / B * (B * Tiling::accumulators) + k % B];
    }
  }
  template <class View, class SomeBatch>
  __device__ __forceinline__ void store(View view, SomeBatch const& batch, int first_slot) const {
    if constexpr (ViewTraits<View>::writes) {
      Field const field = ViewTraits<View>::field(view);
      if (first_slot < field.on_chip) {
        double* const to = on_chip(field, first_slot);
        HOSTLESS_UNROLL
        for (int k = 0; k < S * B; ++k)
          if (S == 1 || batch.valid(k / B)) to[k * block_threads] = value[k / B][k % B];
      }
      if (first_slot >= field.on_chip || (ViewTraits<View>::halo_source && field.through)) {
        double* const to = far(field, batch);
        HOSTLESS_UNROLL
        for (int k = 0; k < S * B; ++k) {
          if (batch.valid(k / B)) to[k / B * (B * Tiling::accumulators) + k % B] = value[k / B][k % B];
        }
      }
      if (field.windowed) {
        double* const to = in_window(field, batch);
        HOSTLESS_UNROLL
        for (int k = 0; k < S * B; ++k) {
          if (batch.valid(k / B)) to[k / B * (B * Tiling::accumulators) + k % B] = value[k / B][k % B];
        }
      }
    }
  }

 private:
  __device__ static __forceinline__ double* on_chip(Field const& field, int first_slot) {
    return pool() + field.shared + first_slot * (B * block_threads) + threadIdx.x;
  }
  __device__ static __forceinline__ double* in_window(Field const& field, Batch<S> const& batch) {
    return pool() + field.window + batch.block_row(0) * B;
  }
  __device__ static __forceinline__ double* far(Field const& field, Batch<S> const& batch) {
    return field.memory + static_cast<std::int64_t>(batch.block_row(0)) * B;
  }
};

/// use(batch), said to be full where it is.
template <int S, class Use>
__device__ __forceinline__ void full_or_not(Batch<S> const& batch, Use const& use) {
  if (batch.valid(S - 1)) {
    use(FullBatch<S>{batch});
  } else {
    use(batch);
  }
}

/// Runs body(state, block row, sums, staged views...) on every block row of a batch, then writes back.
template <int B, int S, int K, class SomeBatch, class Body, class... Views>
__device__ __forceinline__ void rows_of_batch(State const& state, SomeBatch const& batch, int first_slot,
                                              double (&sum)[K == 0 ? 1 : K], Body const& body,
                                              Views... views) {
  auto const work = [&](auto const&... staged) {
    HOSTLESS_UNROLL
    for (int s = 0; s < S; ++s) {
      if (!batch.valid(s)) continue;
      body(state, BlockRow<B>{static_cast<std::int64_t>(batch.block_row(s)) * B, s}, Contribution<1>{sum},
           staged...);
    }
    (staged.store(views, batch, first_slot), ...);
  };
  work(Staged<B, S>(views, batch, first_slot)...);
}

/// The same behind products that are there, of fields in memory: body(state, block row, sums, products, p,
/// staged views...).
template <int B, int S, int K, class SomeBatch, class Products, class Body, class... Views>
__device__ __forceinline__ void rows_of_products(State const& state, SomeBatch const& batch,
                                                 double (&sum)[K == 0 ? 1 : K], Products const& products,
                                                 Field p, Body const& body, Views... views) {
  auto const work = [&](auto const& own, auto const&... staged) {
    HOSTLESS_UNROLL
    for (int s = 0; s < S; ++s) {
      if (!batch.valid(s)) continue;
      body(state, BlockRow<B>{static_cast<std::int64_t>(batch.block_row(s)) * B, s}, Contribution<1>{sum},
           products, own, staged...);
    }
    (staged.store(views, batch, 0), ...);
  };
  work(Staged<B, S>(reads(p), batch, 0), Staged<B, S>(views, batch, 0)...);
}

/// As multiply_diagonals, with the matrix in shared memory (PersistentRun::keep_matrix) and x(row) wherever
/// it lives. N diagonals; 0: any number.
template <int S, int N, class X>
__device__ __forceinline__ void add_on_chip(DiagonalsView const& a, Batch<S> const& batch, int first_slot,
                                            X const& x, double (&sum)[S][1]) {
  int const count = N > 0 ? N : a.count;
  double const* const value = pool() + first_slot * count * block_threads + threadIdx.x;
  HOSTLESS_UNROLL
  for (int s = 0; s < S; ++s) {
    sum[s][0] = 0.0;
    if (!batch.valid(s)) continue;
    HOSTLESS_UNROLL
    for (int d = 0; d < count; ++d) {
      double const entry = value[(s * count + d) * block_threads];
      sum[s][0] = __builtin_fma(entry, x(batch.block_row(s) + a.offset[d]), sum[s][0]);
    }
  }
}
template <int S, class X>
HOSTLESS_LONG_KERNEL void multiply_on_chip(DiagonalsView const& a, Batch<S> const& batch, int first_slot,
                                           X const& x, double (&sum)[S][1]) {
  if (a.count == 7) return add_on_chip<S, 7>(a, batch, first_slot, x, sum);
  if (a.count == 5) return add_on_chip<S, 5>(a, batch, first_slot, x, sum);
  add_on_chip<S, 0>(a, batch, first_slot, x, sum);
}

/// Block rows of a field in memory, block_threads apart, those before `end`.
template <int B, int S>
struct Held {
  mutable double value[S][B];
  Held() = default;
  __device__ __forceinline__ Held(double const* memory, std::int32_t block_row, std::int32_t end) {
    HOSTLESS_UNROLL
    for (int s = 0; s < S; ++s) {
      std::int32_t const at = block_row + s * block_threads;
      HOSTLESS_UNROLL
      for (int j = 0; j < B; ++j)
        value[s][j] = at < end ? memory[static_cast<std::int64_t>(at) * B + j] : 0.0;
    }
  }
  __device__ __forceinline__ double& operator()(BlockRow<B> block_row, int j) const {
    return value[block_row.slot][j];
  }
};

/// One entry of a field, for a body that forms a neighbour's value.
struct Entry {
  mutable double value;
  __device__ __forceinline__ double& operator()(BlockRow<1>, int) const { return value; }
};
template <class Body>
__device__ __forceinline__ double formed(State const& state, Body const& body, std::int32_t row, double old,
                                         double view) {
  Entry const entry{old}, other{view};
  body(state, BlockRow<1>{row, 0}, Contribution<1>{nullptr}, entry, other);
  return entry.value;
}

/// What a phase multiplies with, and where it may find the gathered field: in `window` (row r at window[r]),
/// or in memory.
struct Multiplier {
  RowsView const& rows;
  bool is_rounded, is_on_chip;
  double const* window;
};

/// The same behind the products of the gathered field (`is_formed`: always in the window): body(state, block
/// row, sums, products, p, views...).
template <int B, int S, int K, class Inner, bool is_formed, class Body, class... Views>
__device__ __forceinline__ void products_of_batch(State const& state, Multiplier const& by,
                                                  Batch<S> const& batch, int first_slot,
                                                  double (&sum)[K == 0 ? 1 : K], Field p, Body const& body,
                                                  Views... views) {
  RowsView const& a = by.rows;
  bool const is_rounded = by.is_rounded;
  double const* const window = by.window;
  auto const work = [&](auto const& own, auto const&... staged) {
    double product[S][B];
    if constexpr (is_formed) {
      multiply<B, S, Inner, SharedRows>(a, is_rounded, batch, window, product);
    } else if constexpr (B == 1) {
      if (by.is_on_chip) {
        multiply_on_chip<S>(
            a.diagonals, batch, first_slot, [&](std::int32_t row) { return p.memory[row]; }, product);
      } else {
        multiply<B, S, Inner, SharedRows>(a, is_rounded, batch, p.memory, product);
      }
    } else if (window != nullptr) {
      multiply<B, S, Inner, SharedRows>(a, is_rounded, batch, window, product);
    } else {
      multiply<B, S, Inner, SharedRows>(a, is_rounded, batch, p.memory, product);
    }
    auto const products = [&](BlockRow<B> block_row, int j) { return product[block_row.slot][j]; };
    HOSTLESS_UNROLL
    for (int s = 0; s < S; ++s) {
      if (!batch.valid(s)) continue;
      body(state, BlockRow<B>{static_cast<std::int64_t>(batch.block_row(s)) * B, s}, Contribution<1>{sum},
           products, own, staged...);
    }
    (staged.store(views, batch, first_slot), ...);
  };
  work(Staged<B, S>(reads(p), batch, first_slot), Staged<B, S>(views, batch, first_slot)...);
}

/// The same with everything on chip, and the gathered field in a window of shared memory: row r at window[r].
template <int S, int K, class Body, class... Views>
__device__ __forceinline__ void window_products_of_batch(State const& state, RowsView const& a,
                                                         Batch<S> const& batch, int first_slot,
                                                         double (&sum)[K == 0 ? 1 : K], double const* window,
                                                         Body const& body, Views... views) {
  auto const work = [&](auto const&... staged) {
    double product[S][1];
    auto const entry = [&](std::int32_t row) { return window[row]; };
    multiply_on_chip<S>(a.diagonals, batch, first_slot, entry, product);
    auto const products = [&](BlockRow<1> block_row, int j) { return product[block_row.slot][j]; };
    auto const own = [&](BlockRow<1> block_row, int) {
      return entry(static_cast<std::int32_t>(block_row.row));
    };
    HOSTLESS_UNROLL
    for (int s = 0; s < S; ++s) {
      if (!batch.valid(s)) continue;
      body(state, BlockRow<1>{batch.block_row(s), s}, Contribution<1>{sum}, products, own, staged...);
    }
    (staged.store(views, batch, first_slot), ...);
  };
  work(Staged<1, S>(views, batch, first_slot)...);
}

}  // namespace hostless::gpu
