// What to try where a limit of iterations came first.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/counted.hpp"
#include "solve/advice_words.hpp"
#include "solve/methods/method_vectors.hpp"
#include "solve/solver_parts.hpp"

namespace hostless {
namespace {

// After 20 steps the number that follows from their condition was 0.9 to 3.8 times what solves needed (nine generated
// problems, four preconditioners), after ten as little as 0.46 times, after one always some 10.
bool tells_too_little(State const& state) {
  constexpr std::int64_t least = 20;
  return state.iteration < least;
}

// That x has lost what the recurrence goes on to gain: its steps help no more. With a rounded matrix that is the plan.
bool has_lost_recurrence(SolveOptions const& options, Result const& result) {
  constexpr double far = 10;
  return options.matrix_precision == MatrixPrecision::fp64 &&
         result.true_relative_residual > far * result.recurrence_relative_residual;
}

}  // namespace

// sqrt(condition) / 2 ln(2 / tolerance), the bound of the method's steps: from here on where they have not
// told the condition yet.
std::string Solver::Parts::more_iterations(Result const& result) const {
  if (tells_too_little(state)) return "Allow many more (so few do not tell how many)";
  double const gap = std::max(state.target / std::max(result.rhs_norm, state.target), 1e-16);
  double const most = 0.5 * std::sqrt(result.condition_estimate) * std::log(2 / gap);
  if (!(most > 1.1 * static_cast<double>(state.iteration)))
    return fmt::format("Allow more than {}", counted(state.iteration, "iteration"));
  double const unit = std::pow(10.0, std::floor(std::log10(most)) - 1);  // two digits say enough
  return fmt::format("Allow more iterations, some {:.0f} by that condition", std::ceil(most / unit) * unit);
}

std::string Solver::Parts::advice_where_recurrence_is_lost(Result const& result) {
  return fmt::format(
             "the limit of {} came first, and |b - A x| / |b| is {:.1e}, where the recurrence has {:.1e}{}: "
             "rounding has parted them, and what further iterations make smaller is the recurrence's. Try "
             "{}{}, or raise the tolerance.",
             counted(state.limit, "iteration"), result.true_relative_residual,
             result.recurrence_relative_residual, condition_of(result), other_methods(method()),
             other_preconditioner()) +
         advice_on_convection();
}

std::string Solver::Parts::advice_at_the_limit(Result const& result) {
  if (result.true_relative_residual <= end_of_digits)
    return fmt::format(
        "the limit of {} came first, and |b - A x| / |b| is {:.1e}: that is as far as fp64 goes. Raise "
        "the tolerance.",
        counted(state.limit, "iteration"), result.true_relative_residual);
  if (has_lost_recurrence(options, result)) return advice_where_recurrence_is_lost(result);
  return fmt::format("the limit of {} came first{}. {}, or try {}.", counted(state.limit, "iteration"),
                     tells_too_little(state) ? "" : condition_of(result), more_iterations(result),
                     other_preconditioner()) +
         advice_on_convection();
}

}  // namespace hostless
