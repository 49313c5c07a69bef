#pragma once

#include "hostless/run/run_options.hpp"
#include "hostless/solve/matrix.hpp"

namespace hostless {

/// Which GPU of its machine a rank works on, and how many ranks share it.
struct GpuSlot {
  int device = 0, sharers = 1;
};
/// Rank number `rank` of `ranks` on a machine, of whose GPUs the first `gpus` > 0 are taken in turn, or in blocks: the
/// first ranks have the first one (with several nodes, whose ranks follow each other).
GpuSlot gpu_slot(int rank, int ranks, int gpus, bool in_blocks = false);

/// Whether the ranks of a matrix can share the GPUs of their machines as `run` asks for.
/// Errors  usage  as check_gpus; a layout of the GPU that one rank alone multiplies; ranks of several
/// machines
///                that are to use each other's memory
void check_gpu_ranks(Matrix const& matrix, RunOptions const& run);

}  // namespace hostless
