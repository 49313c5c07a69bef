#pragma once
// The kernel around a persistent run.

#include "run/gpu/persistent.gpu.hpp"

namespace hostless::gpu {

/// `run_text(run, data)` is the method (solve/gpu/instance.gpu.hpp), `Data::Descriptor` tells of it. `peers`:
/// with several ranks. `state` is read by all blocks and written by the first.
template <int B, class Data, class Inner, Ranks ranks>
__global__ void __launch_bounds__(block_threads, 1)
    persistent_kernel(HOSTLESS_PARAMETER Data const data, HOSTLESS_PARAMETER RowsView const rows,
                      HOSTLESS_PARAMETER Layout const layout, HOSTLESS_PARAMETER Control const control,
                      PeerView const* peers, FlaggedWord* flagged_words, std::uint32_t* epoch, State* state) {
  __shared__ Shared shared;
  __shared__ PeersOnChip<ranks> on_chip;
  enter_kernel(shared, on_chip, layout, peers, state);
  GridBarrier<ranks> barrier(shared, layout, control, on_chip, flagged_words, *epoch);
  {
    PersistentRun<B, Inner, ranks, Data::Descriptor::values> run(shared, rows, layout, barrier);
    run.keep_matrix();
    run_text(run, data);
  }
  leave_kernel(shared, barrier.epoch(), state, *epoch);
}

}  // namespace hostless::gpu
