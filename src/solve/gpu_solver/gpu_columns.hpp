#pragma once
// Several right-hand sides at once on a GPU.

#include <algorithm>
#include <cstdint>
#include <span>

#include "hostless/solve/solver.hpp"
#include "solve/gpu_solver/gpu_library.hpp"

namespace hostless::gpu {

/// Several right-hand sides are those of one rank, whose kernels of phases know how many there are.
/// Errors  usage  what else such a solve would need
void check_columns(Problem const& problem, SolveOptions const& options);

/// Entries of a history that there are at this state.
inline std::int64_t kept_of(std::span<StepRecord const> history, State const& state) {
  return std::min(static_cast<std::int64_t>(history.size()), state.iteration + 1);
}

}  // namespace hostless::gpu
