#pragma once
// What the steps of a method know of the matrix for nothing: conjugate gradients are a Lanczos process, whose
// tridiagonal matrix follows from alpha and beta.

#include <optional>
#include <span>
#include <vector>

#include "hostless/run/state.hpp"

namespace hostless {

/// The steps whose coefficients are still those of the matrix: in each process, from a true residual to the
/// next, those of a residual above ten times the gap between true residual and recurrence at its end. Below
/// it the vectors that the one-reduction methods carry along have lost each other, and their alpha is of no
/// matrix.
///
/// steps    what iterations 1, 2, ... have left
/// true_rr  of the true residual after the last one; NaN: there was none, so the last process may go as far
///          as it
/// likes
std::vector<StepRecord> trusted_steps(std::span<StepRecord const> steps, double true_rr);

struct RitzValues {
  double smallest, largest;
};

/// The extreme eigenvalues of the Lanczos matrices of these steps, to six digits: those of M A from inside,
/// but for rounding, the closer the more steps there are (Saad, Iterative Methods for Sparse Linear Systems,
/// 2nd edition, section 6.7.3). Steps after a beta of 0 are a process of their own. Nothing where there are
/// no steps, or none that a positive definite M A makes.
///
/// Cost  some forty divisions a step
std::optional<RitzValues> extreme_ritz_values(std::span<StepRecord const> steps);

}  // namespace hostless
