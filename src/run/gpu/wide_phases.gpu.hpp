#pragma once
// The sweep of several right-hand sides. Threads: 512 a block, a block for each tile and four of them.
// Reduction order: as that of one.

#include "run/gpu/phases.gpu.hpp"

namespace hostless::gpu {

/// Of a block that works on W right-hand sides.
template <int W>
struct WideShared {
  static constexpr int words = sizeof(State) / sizeof(std::uint32_t);
  static constexpr int threads = block_threads / W, warps_of_one = warps / W;  ///< that conclude one of them
  alignas(16) std::uint32_t state_words[W][words];
  double warp_sum[W * widest_sum][warps];
  double total[W][widest_sum];
  bool open[W], last[W];
  __device__ State& state(int c) { return *reinterpret_cast<State*>(state_words[c]); }
};

/// The sums of a block's threads to where those of its tile are added.
template <int W, int K>
__device__ __forceinline__ void store_partials(PhaseMemory const& memory, int first, int tile,
                                               double const (&sum)[W][K], WideShared<W>& shared) {
  int const lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  HOSTLESS_UNROLL
  for (int at = 0; at < W * K; ++at) {
    double const value = add_lanes<32>(sum[at / K][at % K]);
    if (lane == 0) shared.warp_sum[at][warp] = value;
  }
  __syncthreads();
  for (int at = warp; at < W * K; at += warps) {  // a warp for each sum
    double const value = add_lanes<warps>(shared.warp_sum[at][lane % warps]);
    if (lane != 0 || !shared.open[at / K]) continue;
    double* const to = memory.partial_of(first + at / K);
    if (memory.free_order) {
      atomicAdd(to + at % K, value);
    } else {
      to[static_cast<std::int64_t>(at % K) * memory.tiles + tile] = value;
    }
  }
}

/// The sums over all tiles, into shared.total, by the threads of each right-hand side; as add_tiles of one.
template <int W, int K>
__device__ __forceinline__ void add_wide_tiles(PhaseMemory const& memory, int first, WideShared<W>& shared) {
  using Shared = WideShared<W>;
  int const thread = static_cast<int>(threadIdx.x), c = thread / Shared::threads;
  int const mine = thread % Shared::threads * W * memory.tiles_a_thread;
  HOSTLESS_UNROLL
  for (int k = 0; k < K; ++k) {
    double const* const from = memory.partial_of(first + c) + static_cast<std::int64_t>(k) * memory.tiles;
    double waiting[phase_levels] = {}, value = 0.0;
    for (int i = 0; i < memory.tiles_a_thread; ++i) {
      double of_tile[W];
      HOSTLESS_UNROLL
      for (int w = 0; w < W; ++w) {
        int const tile = mine + i * W + w;
        of_tile[w] = shared.last[c] && tile < memory.tiles ? from[tile] : 0.0;
      }
      value = join(waiting, tree(of_tile, W), i);
    }
    value = add_lanes<32>(value);
    if (thread % 32 == 0) shared.warp_sum[c * K + k][thread % Shared::threads / 32] = value;
  }
  __syncthreads();
  if (thread % Shared::threads < K) {
    int const k = thread % Shared::threads;
    shared.total[c][k] = tree(shared.warp_sum[c * K + k], Shared::warps_of_one);
  }
  __syncthreads();
}

/// As conclude, of all right-hand sides of a block together: each that has met its last block is decided on
/// by threads of its own.
template <int W, int K, Ending ending, class Body, class Decision>
__device__ __forceinline__ void conclude_wide(PhaseCall<Body, Decision> const& call, int first, int tile,
                                              double const (&sum)[W][K == 0 ? 1 : K], WideShared<W>& shared) {
  static_assert(decides(ending) || ending == Ending::nothing);
  if constexpr (ending != Ending::nothing) {
    using Shared = WideShared<W>;
    PhaseMemory const& memory = call.memory;
    int const thread = static_cast<int>(threadIdx.x), c = thread / Shared::threads;
    int const mine = thread % Shared::threads;
    if constexpr (K > 0) store_partials<W, K>(memory, first, tile, sum, shared);
    __syncthreads();
    if (thread < W) {
      bool last = false;
      if (shared.open[thread]) {
        fence_gpu();
        last = atomicAdd(memory.arrived + first + thread, 1u) == static_cast<std::uint32_t>(memory.tiles) - 1;
        fence_gpu();
        if (last) memory.arrived[first + thread] = 0;  // for the next phase
      }
      shared.last[thread] = last;
    }
    __syncthreads();
    bool any_last = false;
    for (int one = 0; one < W; ++one) any_last = any_last || shared.last[one];
    if (!any_last) return;
    auto* const state = reinterpret_cast<std::uint32_t*>(memory.state + first + c);
    if (shared.last[c])
      for (int word = mine; word < Shared::words; word += Shared::threads)
        shared.state_words[c][word] = state[word];
    if (K == 0 || memory.free_order) {
      if (shared.last[c] && mine < call.delivery.width) {
        double* const from = K == 0 ? memory.total_of(first + c) : memory.partial_of(first + c);
        shared.total[c][mine] = from[mine];
        if (K > 0) from[mine] = 0.0;  // for the next phase
      }
      __syncthreads();
    } else {
      add_wide_tiles<W, K>(memory, first, shared);
    }
    if (shared.last[c] && mine == 0)
      deliver(call, shared.state(c), shared.total[c], memory.orders->stop != 0);
    __syncthreads();
    if (shared.last[c])
      for (int word = mine; word < Shared::words; word += Shared::threads)
        state[word] = shared.state_words[c][word];
    __syncthreads();
    if (shared.last[c] && mine == 0) tell_loop(call);
  }
}

/// As sweep_kernel for several right-hand sides, `wide_columns` by a block, which reads the matrix once for
/// them. Blocks that share a tile come one after the other, so that caches have it.
template <int B, int K, Ending ending, class Body, class Decision, class... Views>
__global__ void __launch_bounds__(block_threads, 1)
    wide_sweep_kernel(HOSTLESS_PARAMETER PhaseCall<Body, Decision> const call,
                      HOSTLESS_PARAMETER RowsView const rows, Field p, Views... views) {
  constexpr int batch = batch_block_rows<B>, W = wide_columns;
  PhaseMemory const& memory = call.memory;
  int const groups = (memory.columns + W - 1) / W, block = static_cast<int>(blockIdx.x);
  int const tile = block / groups, first = block % groups * W, thread = static_cast<int>(threadIdx.x);
  __shared__ WideShared<W> shared;
  if (thread < W) {
    bool const exists = first + thread < memory.columns;
    shared.open[thread] = exists && memory.state[first + thread].open(call.gate);
    if (exists && !shared.open[thread] && decides(ending) && tile == 0) tell_loop(call);
  }
  __syncthreads();
  State state[W];
  bool open[W];
  int one_open = -1;
  HOSTLESS_UNROLL
  for (int c = 0; c < W; ++c) {
    open[c] = shared.open[c];
    if (!open[c]) continue;
    state[c] = memory.state[first + c];
    one_open = first + c;
  }
  if (one_open < 0) return;
  WideField<W> x;
  HOSTLESS_UNROLL
  for (int c = 0; c < W; ++c) x.of[c] = p.memory + (open[c] ? first + c : one_open) * memory.column_stride;
  double sum[W][K == 0 ? 1 : K] = {};
  each_batch<batch>(call.tiling, tile, [&](Batch<batch> const& b) {
    Wide<W> product[batch][B];
    multiply<B, batch, double, SharedRows>(rows, b, x, product);
    full_or_not(b, [&](auto const& some) {
      HOSTLESS_UNROLL
      for (int c = 0; c < W; ++c) {
        if (!open[c]) continue;
        std::int64_t const offset = (first + c) * memory.column_stride;
        auto const products = [&](BlockRow<B> block_row, int j) { return product[block_row.slot][j].of[c]; };
        rows_of_products<B, batch, K>(state[c], some, sum[c], products, in_memory(p, offset),
                                      in_column(call.body, offset), in_memory(views, offset)...);
      }
    });
  });
  conclude_wide<W, K, ending>(call, first, tile, sum, shared);
}

}  // namespace hostless::gpu
