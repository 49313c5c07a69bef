// What a result has to say in words: which wish ended the solve, and what to try where it has not converged.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/counted.hpp"
#include "base/processors.hpp"
#include "solve/advice_words.hpp"
#include "solve/methods/cg_values.hpp"
#include "solve/methods/method_vectors.hpp"
#include "solve/solver_parts.hpp"

namespace hostless {
namespace {

// Where squares of A's entries (of the size of `entry`) leave what a double holds: that comes before all
// else.
std::string scale_first(double entry) {
  constexpr double least = 1e-150, most = 1e150;
  if (!(entry > 0) || (entry >= least && entry <= most)) return {};
  return fmt::format("Scale the system: entries of A reach some {:.0e}, and squares of them {}flow. Else: ",
                     entry, entry < least ? "under" : "over");
}

}  // namespace

std::string condition_of(Result const& result) {
  if (!std::isfinite(result.condition_estimate)) return {};
  return fmt::format(" (condition at least {:.1e})", result.condition_estimate);
}

std::string other_methods(MethodFacts const& mine) {
  if (mine.steadier != mine.method)
    return fmt::format("method {}, which loses fewer digits, ", name(mine.steadier));
  if (mine.demands != Demands::symmetric) return {};
  return fmt::format("method {}, ", names_of_methods([&](MethodFacts const& one) {
                       return one.demands == Demands::symmetric && one.method != mine.method;
                     }));
}

// The largest entry of the diagonal over the smallest, by size, as far as the processor knows: up to 2
// Jacobi's method would only scale the system as a whole. Not above 1 where none is known. Collective.
double Solver::Parts::diagonal_span() {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  group().together([&] {
    std::vector<double> inverted;
    if (invert_diagonal(*matrix.local(), false, inverted)) return;  // Jacobi's method cannot be used at all
    for (double const entry : inverted) {
      least = std::min(least, std::abs(entry));
      most = std::max(most, std::abs(entry));
    }
  });
  return group().max(most) / group().min(least);
}

// The next better one for this matrix. Collective.
std::string Solver::Parts::other_preconditioner() {
  if (matrix.function()) return "a preconditioner function";
  bool const blocks = matrix.sweep().tiling.block > 1;
  bool const none = options.preconditioner == PreconditionerKind::none;
  if (blocks && (none || options.preconditioner == PreconditionerKind::jacobi))
    return "preconditioner block-jacobi";
  if (none && (only_on_gpu() || !has_constant_diagonal())) return "preconditioner jacobi";
  if (is_chebyshev()) return "a polynomial of higher degree";
  if (options.preconditioner == PreconditionerKind::function) return "a better preconditioner function";
  if (method().offers.polynomial) return "preconditioner chebyshev";
  if (method().demands != Demands::positive_definite)
    return "a preconditioner of your own (a function in C++, M= in Python)";
  return "preconditioner chebyshev with method " +
         names_of_methods([](MethodFacts const& one) { return one.offers.polynomial; });
}

std::string Solver::Parts::advice_where_it_stagnates(Result const& result) {
  constexpr double beyond_rounding = 1e-8;
  std::string text = fmt::format("{}: |b - A x| / |b| stays at {:.1e}{}. ",
                                 went_back_to < 0 ? "restarts from the true residual gain nothing any more"
                                                  : "further iterations lose what x has",
                                 result.true_relative_residual, condition_of(result));
  if (options.null_space_constant)
    text += fmt::format("A 1 reaches {:.1e}, which x without its mean may leave behind. ",
                        constant_image().constant);
  if (options.null_space_constant && result.true_relative_residual > beyond_rounding)
    text +=
        "Where A has null vectors beside the constant one, as parts of a system have that nothing connects, "
        "what b has of them stays too: solve the parts each for itself. ";
  if (result.true_relative_residual <= end_of_digits)
    return text + "That is as far as fp64 goes. Raise the tolerance.";
  return text +
         fmt::format("Try {}{}, or raise the tolerance.", other_methods(method()), other_preconditioner()) +
         advice_on_convection();
}

// The solve itself had converged.
std::string Solver::Parts::advice_where_rounding_lost_it(Result const& result) const {
  double const b_norm = result.rhs_norm > 0 ? result.rhs_norm : 1;
  if (state.status == Status::not_finite)
    return fmt::format(
        "x has entries beyond fp32, whose largest number is 3.4e38: rounded to it they are infinite; in fp64 "
        "|b - A x| / |b| was {:.1e}. Pass b in fp64, or scale the system.",
        rounded_from / b_norm);
  return fmt::format(
      "x rounded to fp32 has |b - A x| / |b| = {:.1e}, where that in fp64 had {:.1e} (fp32 holds 7 digits of "
      "an entry, and A multiplies what is lost of them{}). Pass b in fp64 to keep all digits of x, or raise "
      "the tolerance.",
      result.true_relative_residual, rounded_from / b_norm, condition_of(result));
}

// How much of b the constant vector is, |mean| sqrt(n) / |b|; NaN where b is in the memory of a GPU.
// Collective.
double Solver::Parts::constant_share() {
  if (there != nullptr) return std::numeric_limits<double>::quiet_NaN();
  double const sum = group().sum(std::accumulate(rhs.begin(), rhs.end(), 0.0));
  return std::abs(sum) / std::sqrt(static_cast<double>(matrix.global_rows()) * b_square);
}

// A 1 = 0, and what b has of the constant vector is about all that is left: methods of least residuals stay there,
// where others grow. Collective; two products with A.
bool Solver::Parts::constants_hold_it_up() {
  constexpr double about = 2;
  if (options.null_space_constant) return false;
  double const left = constant_share() * std::sqrt(b_square);
  if (!(left > state.target && std::sqrt(state.true_rr) <= about * left)) return false;
  ConstantImage const image = constant_image();
  return image.vanishes() && image.vanishes_from_left();
}

// Of the null space alone, up to rounding: nothing is left to solve for. Else empty.
std::string Solver::Parts::advice_where_b_was_constant() const {
  if (!(null_space_removed > 0) || std::sqrt(b_square) > rounding_of_mean * null_space_removed) return {};
  return "b was constant, and all of it lost with its mean: x = 0 solves what is left. Pass another "
         "right-hand "
         "side, as A x of a known x.";
}

// A 1 = 0, and nobody has said so. Collective.
std::string Solver::Parts::advice_where_constants_vanish() {
  constexpr double rounding = 1e-12;
  double const share = constant_share();
  std::string const part =
      share > rounding ? fmt::format("b has a constant part of {:.1e} |b|, which no x reaches", share)
      : share <= rounding
          ? "b has no constant part, so rounding, or what b has of further null vectors (parts of a "
            "system that nothing connects have one each), keeps |b - A x| up"
          : "b may have a constant part, which no x reaches";
  return fmt::format(
      "A 1 = 0: the matrix is singular. {}. Try null space `constant` (--null-space constant){}.", part,
      share <= rounding ? ", or solve such parts each for itself" : "");
}

// The constant vector is not all that A has.
std::string Solver::Parts::advice_where_more_vanishes() const {
  return fmt::format(
      "b has parts that no x reaches: A has null vectors beside the constant one, as parts of a system "
      "have that nothing connects, along which {} went in the end. Solve such parts each for "
      "itself, or try method minres for about the least residual.",
      counted(state.iteration, "iteration"));
}

// What was seen of the first step's divisor, or of r'M r, in place of a number that is not zero.
std::string Solver::Parts::advice_where_it_breaks_down() const {
  bool const is_known = method().square_in_m != ScalarIndex::none;
  double const rz = is_known ? state.value[method().square_in_m] : 1;
  if (rz == 0)
    return fmt::format(
        "r'M r = 0 after {}, where r is not 0 (its square underflows, or M is not positive "
        "definite). "
        "Scale the system, or try another preconditioner.",
        counted(state.iteration, "iteration"));
  return fmt::format(
             "{} in the first step from the true residual, after {}, {}{}. Check signs and boundary "
             "conditions, or scale the system.",
             method().breakdown.what, counted(state.iteration, "iteration"), method().breakdown.why,
             is_known ? fmt::format("; r'M r is {:.1e}", rz) : "") +
         advice_on_convection();
}

// With one reduction an iteration the sum is made of vectors that recurrences carry along.
std::string Solver::Parts::advice_where_it_is_indefinite() const {
  CurvatureSum const& seen = method().curvature;
  std::string const sum = seen.value == ScalarIndex::none
                              ? "its steps met a negative curvature"
                              : fmt::format("{} = {:.3e}", seen.name, state.value[seen.value]);
  std::string const other =
      method().steadier == options.method
          ? ""
          : fmt::format("; near the end of what fp64 can reach try method {}", name(method().steadier));
  return fmt::format(
      "{} after {}: A is not positive definite, or {}. Check signs and boundary "
      "conditions, or use a method for indefinite matrices ({}){}.",
      sum, counted(state.iteration, "iteration"), seen.doubt,
      names_of_methods([](MethodFacts const& one) { return one.demands == Demands::symmetric; }), other);
}

// GMRES and ILU, which people look for first where convection is strong, are not there.
std::string Solver::Parts::advice_on_convection() const {
  if (method().demands != Demands::nothing) return {};
  return " Where convection is strong there is no GMRES or ILU here: upwind it, refine the mesh, or bring an "
         "incomplete factorisation of your own (a function in C++, M= in Python).";
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

// A polynomial, or one over the same diagonal, is no help where rounding has lost the smaller rows. Collective.
std::string Solver::Parts::advice_on_rows() {
  constexpr double beyond_jacobi = 1e12;
  bool const knows_rows = !only_on_gpu() && !matrix.function();
  bool const is_jacobi = options.preconditioner == PreconditionerKind::jacobi;
  if (is_chebyshev() || (is_jacobi && knows_rows && diagonal_span() > beyond_jacobi))
    return "scale the system, rows and columns alike, so that its diagonal has entries of about one size";
  return fmt::format("try {}, scale the system", other_preconditioner());
}

// What to try after an ending that is none. At most six products with A. Collective.
std::string Solver::Parts::advice(Result const& result) {
  if (rounded_from >= 0) return advice_where_rounding_lost_it(result);
  if (std::string const text = advice_where_b_was_constant(); !text.empty()) return text;
  if (state.status == Status::aborted) return why_aborted();
  bool const has_grown =
      state.status == Status::iteration_limit && (state.true_rr > state.first_rr || !(left_behind < 0));
  bool const may_be_singular = has_grown || state.status == Status::indefinite_matrix ||
                               state.status == Status::breakdown || state.status == Status::stagnated ||
                               state.status == Status::diverged;
  if (!may_be_singular && state.status == Status::iteration_limit && constants_hold_it_up())
    return advice_where_constants_vanish();
  if (!may_be_singular)
    return state.status == Status::iteration_limit || state.status == Status::not_finite
               ? name_empty_row(advice_by_status(result))
               : advice_by_status(result);
  if (options.null_space_constant && (saw_null_direction || (has_grown && steps_saw_null_direction())))
    return advice_where_more_vanishes();
  ConstantImage const image = constant_image();
  if (!options.null_space_constant && image.vanishes()) return advice_where_constants_vanish();
  return name_empty_row(scale_first(image.scale) + advice_by_status(result));
}

std::string Solver::Parts::word_of_guess() const {
  if (left_behind < 0)
    return went_back_to < 0
               ? std::string()
               : fmt::format(" x is that of iteration {}: later ones have spoilt it.", went_back_to);
  if (!std::isfinite(left_behind)) return " x is the guess: that of the last iteration is not finite.";
  return fmt::format(" x is the guess: that of the last iteration left |b - A x| = {:.1e}.", left_behind);
}

std::string Solver::Parts::advice_by_status(Result const& result) {
  switch (state.status) {
    case Status::iteration_limit:
      return advice_at_the_limit(result);
    case Status::stagnated:
      return advice_where_it_stagnates(result);
    case Status::diverged:
      if (method().demands == Demands::nothing)  // nothing bounds its residuals on their way
        return fmt::format(
                   "the true residual grew more than {:.0e} times. Those of {} may, and come down again: "
                   "raise the "
                   "divergence limit. Else {}.",
                   state.growth_limit, name(options.method), advice_on_rows()) +
               advice_on_convection();
      return fmt::format(
          "the true residual grew more than {:.0e} times. Rows of very different size can do that: {}, or "
          "raise the divergence limit{}{}.",
          state.growth_limit, advice_on_rows(),
          method().demands == Demands::positive_definite
              ? ". Else see whether A is symmetric positive definite"
              : "",
          method().steadier == options.method ? ""
                                              : fmt::format(", or try method {}", name(method().steadier)));
    case Status::indefinite_matrix:
      return advice_where_it_is_indefinite();
    case Status::breakdown:
      return advice_where_it_breaks_down();
    case Status::peer_lost:
      if (group().size() == 1)
        return fmt::format(
            "threads of the rank waited for each other past the deadline after iteration {} ({} on {}). Use "
            "fewer (--lanes), or see what else the machine does.",
            state.iteration, counted(options.run.threads, "thread"),
            counted(processors_of_rank(1, true), "processor"));
      return fmt::format(
          "a rank left or stayed silent past the deadline after iteration {} (nothing can be solved without "
          "it). See its message, or whether it was killed.",
          state.iteration);
    case Status::not_finite:
      return fmt::format(
          "NaN or infinity came up: in A, b{}, by overflow, or in an entry of x that A never reads (an empty "
          "column). "
          "Look for them, or scale the system.",
          options.preconditioner == PreconditionerKind::function
              ? ", the guess or what the preconditioner function gave"
              : " or the guess");
    case Status::indefinite_preconditioner:
      if (!is_chebyshev())
        return "r'M r is not positive: M is not positive definite. Try another preconditioner.";
      return fmt::format(
          "the polynomial is not positive although its upper bound was raised {}, to {:.3e} "
          "(A is not symmetric positive definite, or the bound given was far too low). Try "
          "preconditioner {}.",
          counted(state.raises, "time"), state.value[chebyshev::upper], name(options.chebyshev.inner));
    default:
      return {};
  }
}

}  // namespace hostless
