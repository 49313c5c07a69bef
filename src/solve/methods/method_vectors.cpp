#include "solve/methods/method_vectors.hpp"

#include <algorithm>
#include <cmath>

#include "solve/methods/cg_values.hpp"

namespace hostless {
namespace {

bool is_chebyshev(SolveOptions const& options) {
  return options.preconditioner == PreconditionerKind::chebyshev;
}

}  // namespace

Variant variant_of(SolveOptions const& options) {
  return options.matrix_precision == MatrixPrecision::fp32        ? Variant::rounded
         : is_chebyshev(options)                                  ? Variant::polynomial
         : options.preconditioner == PreconditionerKind::function ? Variant::function
                                                                  : Variant::plain;
}

int fields_of(SolveOptions const& options) {
  auto const fields = facts_of(options.method).fields;
  Variant const variant = variant_of(options);
  return static_cast<int>(std::count_if(fields.begin(), fields.end(), [&](FieldFacts const& field) {
    return field.use != FieldUse::gathered && field.is_of(variant);
  }));
}

PreconditionerKind simple_kind(SolveOptions const& options) {
  return is_chebyshev(options) ? options.chebyshev.inner : options.preconditioner;
}

std::int64_t preconditioner_data_bytes(SolveOptions const& options, int block) {
  PreconditionerKind const kind = simple_kind(options);
  return kind == PreconditionerKind::none ? 0 : kind == PreconditionerKind::block_jacobi ? 8 * block : 8;
}

IterationTraffic traffic_of(SolveOptions const& options, int block) {
  return facts_of(options.method)
      .traffic(variant_of(options), {options.chebyshev.degree, preconditioner_data_bytes(options, block)});
}

double divergence_limit_of(SolveOptions const& options) {
  return options.divergence_limit == 0 ? facts_of(options.method).divergence_limit : options.divergence_limit;
}

std::vector<double> norms(std::span<StepRecord const> steps) {
  std::vector<double> roots;
  roots.reserve(steps.size());
  for (StepRecord const& step : steps) roots.push_back(std::sqrt(step.rr));
  return roots;
}

State first_state(SolveOptions const& options, double upper) {
  State start;
  start.growth_limit = divergence_limit_of(options);
  start.apart = options.preconditioner == PreconditionerKind::function || is_chebyshev(options);
  start.rounded = options.matrix_precision == MatrixPrecision::fp32;
  if (is_chebyshev(options)) {
    start.value[chebyshev::upper] = upper;
    start.value[chebyshev::inverse_upper] = 1 / upper;
  }
  return start;
}

}  // namespace hostless
