#pragma once
// The sweep of several right-hand sides. Threads: 512 a block, a block for each tile and four of them.
// Reduction order: as that of one.

#include "run/gpu/phases.gpu.hpp"

namespace hostless::gpu {

/// As sweep_kernel for several right-hand sides, `wide_columns` by a block, which reads the matrix once for
/// them. Blocks that share a tile come one after the other, so that caches have it.
template <int B, int K, Ending ending, class Body, class Decision, class... Views>
__global__ void __launch_bounds__(block_threads, 1)
    wide_sweep_kernel(HOSTLESS_PARAMETER PhaseCall<Body, Decision> const call,
                      HOSTLESS_PARAMETER RowsView const rows, Field p, Views... views) {
  constexpr int batch = batch_block_rows<B>, W = wide_columns;
  PhaseMemory const& memory = call.memory;
  int const groups = (memory.columns + W - 1) / W, block = static_cast<int>(blockIdx.x);
  int const tile = block / groups, first = block % groups * W;
  State state[W];
  bool open[W];
  int one_open = -1;
  HOSTLESS_UNROLL
  for (int c = 0; c < W; ++c) {
    open[c] = false;
    if (first + c >= memory.columns) continue;
    state[c] = memory.state[first + c];
    open[c] = state[c].open(call.gate);
    if (open[c]) one_open = first + c;
    if (!open[c]) stay_closed<ending>(call, tile);
  }
  if (one_open < 0) return;
  WideField<W> x;
  HOSTLESS_UNROLL
  for (int c = 0; c < W; ++c) x.of[c] = p.memory + (open[c] ? first + c : one_open) * memory.column_stride;
  double sum[W][K == 0 ? 1 : K] = {};
  each_batch<batch>(call.tiling, tile, [&](Batch<batch> const& b) {
    Wide<W> product[batch][B];
    multiply<B, batch, double, SharedRows>(rows, b, x, product);
    HOSTLESS_UNROLL
    for (int c = 0; c < W; ++c) {
      if (!open[c]) continue;
      std::int64_t const offset = (first + c) * memory.column_stride;
      auto const products = [&](BlockRow<B> block_row, int j) { return product[block_row.slot][j].of[c]; };
      rows_of_products<B, batch, K>(state[c], b, sum[c], products, in_memory(p, offset),
                                    in_column(call.body, offset), in_memory(views, offset)...);
    }
  });
  HOSTLESS_UNROLL
  for (int c = 0; c < W; ++c)
    if (open[c]) conclude<K, ending>(call, first + c, tile, sum[c]);
}

}  // namespace hostless::gpu
