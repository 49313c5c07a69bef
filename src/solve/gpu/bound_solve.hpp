#pragma once
// A method bound to a matrix on this GPU.

#include <cstdint>
#include <memory>

#include "solve/gpu_solver/gpu_library.hpp"

namespace hostless::gpu {

/// At most, of all arrays of a persistent run that other ranks store to: two fields, flagged words of one,
/// staging memory, flagged words of barriers.
std::int64_t window_bytes(Problem const& problem);

/// Errors  usage  what this GPU or the run cannot do; environment  memory, a vendor's call that fails
std::unique_ptr<BoundSolve> make_bound_solve(Problem const& problem);

}  // namespace hostless::gpu
