#include "solve/methods/method_vectors.hpp"

#include <cmath>

#include "solve/methods/cg_values.hpp"
#include "solve/setup/chebyshev_setup.hpp"

namespace hostless {
namespace {

bool is_chebyshev(SolveOptions const& options) {
  return options.preconditioner == PreconditionerKind::chebyshev;
}

}  // namespace

int fields_of(SolveOptions const& options) {
  switch (options.method) {
    case Method::cg:
      return is_chebyshev(options) ? 4 : 3;  // x r q, direction
    case Method::single_reduction_cg:
      return 5;  // x r p s w
    case Method::pipelined_cg:
      return 7;  // x r w p s z n
  }
  return 3;
}

PreconditionerKind simple_kind(SolveOptions const& options) {
  return is_chebyshev(options) ? options.chebyshev.inner : options.preconditioner;
}

std::int64_t preconditioner_data_bytes(SolveOptions const& options, int block) {
  PreconditionerKind const kind = simple_kind(options);
  return kind == PreconditionerKind::none ? 0 : kind == PreconditionerKind::block_jacobi ? 8 * block : 8;
}

std::int64_t products_an_iteration(SolveOptions const& options) {
  return is_chebyshev(options) ? options.chebyshev.degree + 1 : 1;
}

std::int64_t vector_bytes(SolveOptions const& options, std::int64_t m) {
  switch (options.method) {
    case Method::cg:
      if (is_chebyshev(options)) return chebyshev_vector_bytes(options.chebyshev.degree, m) + 16 + 48;
      return 24 + 16 + 48 + 2 * m;
    case Method::single_reduction_cg:
      return 88 + 24 + m;
    case Method::pipelined_cg:
      return 112 + 16 + m;
  }
  return 0;
}

std::vector<double> norms(std::span<StepRecord const> steps) {
  std::vector<double> roots;
  roots.reserve(steps.size());
  for (StepRecord const& step : steps) roots.push_back(std::sqrt(step.rr));
  return roots;
}

State first_state(SolveOptions const& options, double upper) {
  State start;
  start.growth_limit = options.divergence_limit;
  start.apart = options.preconditioner == PreconditionerKind::function || is_chebyshev(options);
  start.rounded = options.matrix_precision == MatrixPrecision::fp32;
  if (is_chebyshev(options)) {
    start.value[chebyshev::upper] = upper;
    start.value[chebyshev::inverse_upper] = 1 / upper;
  }
  return start;
}

}  // namespace hostless
