#include <fmt/format.h>

#include <cstring>
#include <string>

#include "base/nearest.hpp"
#include "hostless/solve/solver.hpp"

namespace hostless {
namespace {

template <class Kind, std::size_t N>
Kind named(char const* text, Kind const (&all)[N], char const* what, char const* list) {
  std::vector<std::string> words;
  for (Kind kind : all) {
    if (std::strcmp(text, name(kind)) == 0) return kind;
    words.emplace_back(name(kind));
  }
  throw Error(ErrorCode::usage, std::string("unknown ") + what + " '" + text + "'." +
                                    did_you_mean(text, words) + " Use " + list + ".");
}

}  // namespace

char const* name(PreconditionerKind kind) {
  switch (kind) {
    case PreconditionerKind::none:
      return "none";
    case PreconditionerKind::jacobi:
      return "jacobi";
    case PreconditionerKind::block_jacobi:
      return "block-jacobi";
    case PreconditionerKind::function:
      return "function";
    case PreconditionerKind::chebyshev:
      return "chebyshev";
  }
  return "none";
}
char const* name(MatrixPrecision precision) { return precision == MatrixPrecision::fp32 ? "fp32" : "fp64"; }
char const* name(Reduction reduction) { return reduction == Reduction::fast ? "fast" : "ordered"; }

PreconditionerKind preconditioner_from(char const* text) {
  return named(text,
               {PreconditionerKind::none, PreconditionerKind::jacobi, PreconditionerKind::block_jacobi,
                PreconditionerKind::chebyshev},
               "preconditioner", "none, jacobi, block-jacobi or chebyshev");
}
Reduction reduction_from(char const* text) {
  return named(text, {Reduction::ordered, Reduction::fast}, "reduction", "ordered or fast");
}
void check_tolerances(double rtol, double atol) {
  if (rtol >= 0 && atol >= 0) return;
  throw Error(ErrorCode::usage,
              fmt::format("rtol {}, atol {} (tolerances are >= 0). Correct them.", rtol, atol));
}

void check_ends(SolveOptions const& options) {
  check_tolerances(options.rtol, options.atol);
  double const limit = options.divergence_limit;
  if (limit == 0 || (limit >= 1 && limit <= 1e100)) return;
  throw Error(
      ErrorCode::usage,
      fmt::format("divergence limit {} (how many times the first residual the true one may be, from 1 to "
                  "1e100). Correct it.",
                  limit));
}

MatrixPrecision matrix_precision_from(char const* text) {
  return named(text, {MatrixPrecision::fp64, MatrixPrecision::fp32}, "matrix precision", "fp64 or fp32");
}

}  // namespace hostless
