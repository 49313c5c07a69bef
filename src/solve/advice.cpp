// What a result has to say in words: which wish ended the solve, and what to try where it has not converged.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "solve/method_vectors.hpp"
#include "solve/solver_parts.hpp"

namespace hostless {
namespace {

std::string condition_of(Result const& result) {
  if (!std::isfinite(result.condition_estimate)) return {};
  return fmt::format(" (condition at least {:.1e})", result.condition_estimate);
}

}  // namespace

// Whether Jacobi's method would only scale the system as a whole, as far as the processor knows. Collective.
bool Solver::Parts::has_constant_diagonal() {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  group().together([&] {
    std::vector<double> inverses;
    if (invert_diagonal(*matrix.local(), false, inverses)) return;  // Jacobi's method cannot be used at all
    for (double const entry : inverses) {
      least = std::min(least, std::abs(entry));
      most = std::max(most, std::abs(entry));
    }
  });
  return group().max(most) <= 2 * group().min(least);
}

// The next better one for this matrix. Collective.
std::string Solver::Parts::other_preconditioner() {
  if (matrix.function()) return "a preconditioner function";
  bool const blocks = matrix.plan().tiling.block > 1;
  bool const none = options.preconditioner == PreconditionerKind::none;
  if (blocks && (none || options.preconditioner == PreconditionerKind::jacobi))
    return "preconditioner block-jacobi";
  if (none && (only_on_gpu() || !has_constant_diagonal())) return "preconditioner jacobi";
  if (is_chebyshev()) return "a polynomial of higher degree";
  if (options.preconditioner == PreconditionerKind::function) return "a better preconditioner function";
  return options.method == Method::cg ? "preconditioner chebyshev"
                                      : "preconditioner chebyshev with method cg";
}

// sqrt(condition) / 2 ln(2 / tolerance), the bound of the method's steps: from here on where they have not
// told the condition yet.
std::string Solver::Parts::more_iterations(Result const& result) const {
  double const gap = std::max(state.target / std::max(result.rhs_norm, state.target), 1e-16);
  double const most = 0.5 * std::sqrt(result.condition_estimate) * std::log(2 / gap);
  if (!(most > 1.1 * static_cast<double>(state.iteration)))
    return fmt::format("Allow more than {} iterations", state.iteration);
  double const unit = std::pow(10.0, std::floor(std::log10(most)) - 1);  // two digits say enough
  return fmt::format("Allow more iterations, some {:.0f} by that condition", std::ceil(most / unit) * unit);
}

std::string Solver::Parts::advice_where_it_stagnates(Result const& result) {
  std::string text = fmt::format(
      "restarts from the true residual gain nothing any more: |b - A x| / |b| stays at {:.1e}{}. ",
      result.true_relative_residual, condition_of(result));
  if (options.null_space_constant)
    text += fmt::format("A 1 reaches {:.1e}, which x without its mean may leave behind. ",
                        constant_image().constant);
  text += "Raise the tolerance to what can be reached";
  if (options.method != Method::cg) text += ", or try method cg, which loses fewer digits";
  return text + ".";
}

// Which wish it was, of the first rank that had one. Collective.
std::string Solver::Parts::why_aborted() {
  Bytes mine(why_stopped.size());
  std::transform(why_stopped.begin(), why_stopped.end(), mine.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  std::string text;
  for (Bytes const& one : group().all_gather_bytes(mine)) {
    if (text.empty()) text.assign(reinterpret_cast<char const*>(one.data()), one.size());
  }
  return text.empty() ? "somebody asked it to stop." : text + ".";
}

// What to try after an ending that is none. At most two products with A. Collective.
std::string Solver::Parts::advice(Result const& result) {
  bool const may_be_singular = state.status == Status::indefinite_matrix ||
                               state.status == Status::breakdown || state.status == Status::stagnated ||
                               state.status == Status::diverged;
  if (may_be_singular && !options.null_space_constant && constant_image().vanishes())
    return "A 1 = 0: the matrix is singular and b has a constant part. Try null space `constant` "
           "(--null-space constant).";
  switch (state.status) {
    case Status::aborted:
      return why_aborted();
    case Status::iteration_limit:
      return fmt::format("the limit of {} iterations came first{}. {}, or try {}.", state.limit,
                         condition_of(result), more_iterations(result), other_preconditioner());
    case Status::stagnated:
      return advice_where_it_stagnates(result);
    case Status::diverged:
      return fmt::format(
          "the true residual grew {:.0e} times. See whether A is symmetric positive definite{}.",
          state.growth_limit, options.method == Method::cg ? "" : ", or try method cg");
    case Status::indefinite_matrix:
      return fmt::format(
          "a direction p with p'A p < 0 came up: A is not positive definite. Check signs and boundary "
          "conditions, or use a method for indefinite matrices (MINRES){}.",
          options.method == Method::cg ? "" : "; near the end of what fp64 can reach try method cg");
    case Status::breakdown:
      return "a divisor became zero: A is singular, or squares underflow. Check boundary conditions, or "
             "scale "
             "the system.";
    case Status::not_finite:
      return "NaN or infinity came up: in A, b or the guess, or by overflow. Look for them, or scale the "
             "system.";
    case Status::indefinite_preconditioner:
      if (!is_chebyshev())
        return "r'M r is not positive: M is not positive definite. Try another preconditioner.";
      return fmt::format(
          "the polynomial is not positive although its upper bound was raised {} times, to {:.3e} "
          "(A is not symmetric positive definite, or the bound given was far too low). Try "
          "preconditioner {}.",
          state.raises, state.upper, name(options.chebyshev.inner));
    default:
      return {};
  }
}

}  // namespace hostless
