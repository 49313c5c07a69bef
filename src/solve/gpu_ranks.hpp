#pragma once

#include "hostless/run/run_options.hpp"
#include "hostless/solve/matrix.hpp"

namespace hostless {

/// Whether the ranks of a matrix can share the GPUs of their nodes as `run` asks for.
/// Errors  usage  as check_gpus; a layout of the GPU that one rank alone multiplies
void check_gpu_ranks(Matrix const& matrix, RunOptions const& run);

}  // namespace hostless
