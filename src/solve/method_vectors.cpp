#include "solve/method_vectors.hpp"

#include "solve/chebyshev_setup.hpp"

namespace hostless {

int fields_of(SolveOptions const& options) {
  switch (options.method) {
    case Method::cg:
      return options.preconditioner == PreconditionerKind::chebyshev ? 4 : 3;  // x r q, direction
    case Method::single_reduction_cg:
      return 5;  // x r p s w
    case Method::pipelined_cg:
      return 7;  // x r w p s z n
  }
  return 3;
}

std::int64_t vector_bytes(SolveOptions const& options, std::int64_t m) {
  switch (options.method) {
    case Method::cg:
      if (options.preconditioner == PreconditionerKind::chebyshev)
        return chebyshev_vector_bytes(options.chebyshev.degree, m) + 16 + 48;
      return 24 + 16 + 48 + 2 * m;
    case Method::single_reduction_cg:
      return 88 + 24 + m;
    case Method::pipelined_cg:
      return 112 + 16 + m;
  }
  return 0;
}

State first_state(SolveOptions const& options, double upper) {
  bool const is_chebyshev = options.preconditioner == PreconditionerKind::chebyshev;
  State start;
  start.apart = options.preconditioner == PreconditionerKind::function || is_chebyshev;
  start.rounded = options.matrix_precision == MatrixPrecision::fp32;
  if (is_chebyshev) {
    start.upper = upper;
    start.inverse_upper = 1 / upper;
  }
  return start;
}

}  // namespace hostless
