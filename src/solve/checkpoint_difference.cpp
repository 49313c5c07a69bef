// What tells the solve of a checkpoint from the one that would resume it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "hostless/solve/solver.hpp"
#include "solve/checkpoint.hpp"
#include "solve/methods/method_facts.hpp"

namespace hostless {
namespace {

template <class Kind>
std::string named(std::int32_t kind, Kind last) {
  return kind >= 0 && kind <= static_cast<std::int32_t>(last) ? name(static_cast<Kind>(kind)) : "unknown";
}

std::string method_named(std::int32_t kind) {
  for (MethodFacts const& one : method_table())
    if (static_cast<std::int32_t>(one.method) == kind) return one.name;
  return "unknown";
}

// NaN is no M that anybody has solved with.
bool is_same_function(CheckpointIdentity const& file, CheckpointIdentity const& mine) {
  constexpr double rounding = 1e-6;  // of one in fp32 too
  double const most = rounding * std::max(file.function_norm, mine.function_norm);
  return std::abs(file.function_norm - mine.function_norm) <= most &&
         std::abs(file.function_part - mine.function_part) <= most;
}

// What follows from another number of rows or ranks, from another plan or null space is not told beside it.
std::vector<std::string> differences(CheckpointIdentity const& file, CheckpointIdentity const& mine) {
  std::vector<std::string> all;
  auto const tell = [&](char const* what, auto const& theirs, auto const& here) {
    if (theirs != here) all.push_back(fmt::format("{} {} (here {})", what, theirs, here));
  };
  tell("rows", file.rows, mine.rows);
  if (!all.empty()) return all;
  tell("ranks", file.ranks, mine.ranks);
  bool const same_ranks = all.empty();
  tell("method", method_named(file.method), method_named(mine.method));
  constexpr auto last = PreconditionerKind::chebyshev;
  tell("preconditioner", named(file.preconditioner, last), named(mine.preconditioner, last));
  if (file.preconditioner == mine.preconditioner) {
    tell("Chebyshev degree", file.degree, mine.degree);
    tell("Chebyshev inner", named(file.inner, last), named(mine.inner, last));
    tell("Chebyshev ratio", file.ratio, mine.ratio);
    tell("Chebyshev upper", file.upper, mine.upper);
  }
  tell("matrix precision", named(file.precision, MatrixPrecision::fp32),
       named(mine.precision, MatrixPrecision::fp32));
  tell("reduction", named(file.reduction, Reduction::fast), named(mine.reduction, Reduction::fast));
  auto const null_space = [](std::int32_t kind) { return kind == 0 ? "none" : "constant"; };
  if (file.null_space != mine.null_space)
    all.push_back(
        fmt::format("null space {} (here {})", null_space(file.null_space), null_space(mine.null_space)));
  if (!same_ranks) return all;
  if (file.plan != mine.plan) {
    all.emplace_back("another partition, block size, route, nodes, slices or pattern of the matrix");
    return all;
  }
  if (file.matrix != mine.matrix) all.emplace_back("another matrix");
  if (file.preconditioner == mine.preconditioner && !is_same_function(file, mine))
    all.emplace_back("another preconditioner function M");
  // that of a null space has lost its part in it
  if (file.null_space == mine.null_space && file.rhs != mine.rhs) all.emplace_back("another right-hand side");
  return all;
}

}  // namespace

std::string difference_of(CheckpointIdentity const& file, CheckpointIdentity const& mine) {
  return fmt::to_string(fmt::join(differences(file, mine), ", "));
}

}  // namespace hostless
