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

/// Whether the directions of conjugate gradients have become null vectors of A. Rounding and a b that no x
/// reaches lead there: r'M r no longer falls, and all of a direction that A sees is lost beside the rest.
/// z, the part of p that is new, is orthogonal to the rest in the product of inverse M, so that
/// p'p = (1 + beta p'p of before) r'M r there, and p'A p = r'M r / alpha.
class NullDirections {
 public:
  /// Of the next step. True: p'A p is below what rounding leaves of |M A| p'p.
  bool add(StepRecord const& step);

 private:
  double square_ = 1;   // p'p over r'M r
  double largest_ = 0;  // of 1 / alpha, none of which is above |M A|
};

}  // namespace hostless
