#include "solve/setup/precision.hpp"

#include <fmt/format.h>

#include <optional>

#include "solve/methods/method_facts.hpp"

namespace hostless {

void check_precision(SolveOptions const& options, Matrix const& matrix) {
  if (options.matrix_precision == MatrixPrecision::fp64) return;
  auto refuse = [](std::string const& text) { throw Error(ErrorCode::usage, text); };
  if (!facts_of(options.method).offers.rounded) {
    auto const rounds = [](MethodFacts const& one) { return one.offers.rounded; };
    refuse(
        fmt::format("an fp32 matrix with {} is refused (only {} replaces its residual by the true residual "
                    "often enough). Use "
                    "method {}, or matrix precision fp64.",
                    name(options.method), names_of_methods(rounds, " and "), names_of_methods(rounds)));
  }
  if (options.preconditioner == PreconditionerKind::chebyshev ||
      options.preconditioner == PreconditionerKind::function) {
    refuse(fmt::format(
        "an fp32 matrix with preconditioner {} is refused (it multiplies on its own account, or may). Use "
        "none, jacobi or block-jacobi, or matrix precision fp64.",
        name(options.preconditioner)));
  }
  if (matrix.function())
    refuse("an fp32 matrix of a function (it has no values to round). Use matrix precision fp64.");
}

void check_fp32_range(Matrix const& matrix) {
  if (matrix.local() == nullptr) return;
  std::optional<LocalMatrix::Entry> const entry = matrix.local()->beyond_fp32();
  if (!entry) return;
  throw Error(ErrorCode::bad_input,
              fmt::format("value {:.6e} in row {} does not fit fp32 (it would become {}). Use matrix "
                          "precision fp64 (--matrix-precision fp64), or scale the system.",
                          entry->value, matrix.global_row(entry->row) + 1,
                          static_cast<double>(static_cast<float>(entry->value))));
}

std::string describe_precision(MatrixPrecision precision, State const& state, std::int64_t bytes,
                               std::int64_t rounded_bytes) {
  if (precision == MatrixPrecision::fp64) return name(precision);
  auto const megabytes = [](std::int64_t n) { return static_cast<double>(n) * 1e-6; };
  std::string const saves =
      rounded_bytes < bytes ? fmt::format("{:.3f} MB a sweep instead of {:.3f}, 1.5 times the values held",
                                          megabytes(rounded_bytes), megabytes(bytes))
                            : "held as fp64 on the processor: no bytes are saved";
  std::string text = fmt::format("fp32 in iterations ({}), fp64 for the true residual; {} replacements",
                                 saves, state.replacements);
  switch (state.exact_again) {
    case ExactAgain::no:
      break;
    case ExactAgain::curvature:
      text += fmt::format("; fp64 from iteration {} on: rounded, the matrix is not positive definite",
                          state.changed_at);
      break;
    case ExactAgain::no_gain:
      text += fmt::format("; fp64 from iteration {} on: rounded, the matrix gained nothing any more",
                          state.changed_at);
      break;
  }
  return text;
}

}  // namespace hostless
