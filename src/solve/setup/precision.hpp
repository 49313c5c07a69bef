#pragma once
// What a solver whose iterations multiply with an fp32 matrix (MatrixPrecision::fp32) refuses, and says in
// the end.

#include <cstdint>
#include <string>

#include "hostless/run/state.hpp"
#include "hostless/solve/solver.hpp"

namespace hostless {

/// Errors  usage  a method, a preconditioner or a matrix that has no fp32 products
void check_precision(SolveOptions const& options, Matrix const& matrix);

/// Errors  bad_input  a value of this rank that fp32 would make infinite, or zero, with its row. Values that
/// only a GPU has are looked at where they are rounded.
void check_fp32_range(Matrix const& matrix);

/// One line. `bytes`, `rounded_bytes`: of a sweep with either matrix; equal where nothing is saved.
std::string describe_precision(MatrixPrecision precision, State const& state, std::int64_t bytes,
                               std::int64_t rounded_bytes);

}  // namespace hostless
