#pragma once
// The largest eigenvalue of M A, from below: what the bounds of a polynomial are made from.

#include <span>

#include "run/engine.hpp"
#include "solve/methods/preconditioner.impl.hpp"

namespace hostless {

/// The largest eigenvalue of the symmetric tridiagonal matrix with these diagonals, from above, to the last
/// bits. NaN when an entry is not finite.
/// beside  [diagonal.size() - 1]
double largest_eigenvalue(std::span<double const> diagonal, std::span<double const> beside);

/// Vectors that a Lanczos run overwrites; `r` holds its start.
struct LanczosVectors {
  double *r, *v, *q;  ///< [owned]
  double* p;          ///< [owned], bound to the engine's exchange, ghosts around it
};
constexpr int lanczos_steps = 12;

/// The largest Ritz value of M A after at most `lanczos_steps` steps (Saad, Iterative Methods for Sparse
/// Linear Systems, 2nd edition, section 6.6, in the inner product of M): never above the largest eigenvalue,
/// but for rounding, and rarely 10 % below it. NaN when something is not finite.
///
/// Collective; the same bits on every rank, run and transport. A lost peer: engine.state.status.
/// Cost  a product, an exchange and two sums a step
double largest_ritz_value(host::Engine& engine, AnyPreconditioner const& m, LanczosVectors const& vectors);

}  // namespace hostless
