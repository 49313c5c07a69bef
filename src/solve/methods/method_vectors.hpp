#pragma once
// The vectors of the methods, as their texts account for them.

#include <cstdint>
#include <span>
#include <vector>

#include "hostless/run/state.hpp"
#include "hostless/solve/solver.hpp"
#include "solve/methods/method_facts.hpp"

namespace hostless {

/// What a method's text is made of with these options.
Variant variant_of(SolveOptions const& options);
/// Vectors of a method, all [owned]; x is the first, b and the gathered one are apart.
int fields_of(SolveOptions const& options);
/// With b and the gathered one.
inline int vectors_of(SolveOptions const& options) { return fields_of(options) + 2; }
/// What each row can apply by itself, inside a polynomial or without one.
PreconditionerKind simple_kind(SolveOptions const& options);
/// Bytes of it per row and use; `block`: rows of a block row.
std::int64_t preconditioner_data_bytes(SolveOptions const& options, int block);
/// What an iteration costs; `block`: rows of a block row.
IterationTraffic traffic_of(SolveOptions const& options, int block);

/// The one that was asked for, or the method's.
double divergence_limit_of(SolveOptions const& options);

/// Residual norms of what State::history holds.
std::vector<double> norms(std::span<StepRecord const> steps);

/// As every solve begins, whatever its b. upper: of a polynomial's eigenvalues.
State first_state(SolveOptions const& options, double upper);

}  // namespace hostless
