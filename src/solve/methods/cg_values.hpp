#pragma once
// What State::value holds in the methods of the conjugate gradient family, and of a polynomial as
// preconditioner, which any method may have: its are the last ones.

#include "hostless/run/state.hpp"

namespace hostless {

namespace cg {
enum Value : int {
  rz,  ///< r' M r
  pq,  ///< p' A p; (M r)' A (M r) in the one-reduction methods
  alpha,
  beta,       ///< of the step
  rz_before,  ///< rz of the iteration before
  values
};
}  // namespace cg

namespace chebyshev {
enum Value : int {
  upper = State::values - State::values_of_polynomial,  ///< bound of the eigenvalues of M A
  inverse_upper                                         ///< 1 / upper
};
}  // namespace chebyshev

}  // namespace hostless
