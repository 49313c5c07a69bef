#include "stencil/endings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/counted.hpp"
#include "hostless/base/error.hpp"

namespace hostless {

void check_stop(std::int64_t steps, StencilStop const& stop) {
  if (steps < 0 || stop.every < 0 || !(stop.tolerance >= 0))
    throw Error(
        ErrorCode::usage,
        fmt::format("{}, a look every {} and a tolerance of {} (none can be negative). Give 0 or more.",
                    counted(steps, "step"), stop.every, stop.tolerance));
  if (stop.tolerance > 0 && stop.every == 0)
    throw Error(ErrorCode::usage,
                fmt::format("a tolerance of {} and no looks at what a step changed (nothing would be "
                            "compared with it). Say after how many steps to look.",
                            stop.tolerance));
}

void check_given(std::vector<char> const& given) {
  for (std::size_t k = 0; k < given.size(); ++k)
    if (given[k] == 0)
      throw Error(ErrorCode::usage, fmt::format("array {} of the stencil was not given (its cells are "
                                                "unknown). Give all {} before the first run.",
                                                k, given.size()));
}

void check_array(StencilKernel const& kernel, int array) {
  if (array < 0 || array >= kernel.arrays())
    throw Error(ErrorCode::usage,
                fmt::format("array {} of a stencil that has {} (fields, then coefficients). Use 0 to {}.",
                            array, kernel.arrays(), kernel.arrays() - 1));
}

void check_field(StencilKernel const& kernel, int field) {
  if (field < 0 || field >= kernel.fields)
    throw Error(ErrorCode::usage,
                fmt::format("field {} of a stencil that has {} (others never change). Use 0 to {}.", field,
                            kernel.fields, kernel.fields - 1));
}

void judge_change(StencilChange const& change, StencilStop const& stop, bool asked, StencilResult& result) {
  bool const is_known =
      std::all_of(change.norm.begin(), change.norm.end(), [](double norm) { return std::isfinite(norm); });
  bool const is_steady =
      stop.tolerance > 0 && std::all_of(change.norm.begin(), change.norm.end(),
                                        [&](double norm) { return norm <= stop.tolerance; });
  if (!is_known) {
    result.status = StencilStatus::not_finite;
  } else if (is_steady) {
    result.status = StencilStatus::steady;
  } else if (asked) {
    say_asked(change.step, result);
  }
}

void say_asked(std::int64_t step, StencilResult& result) {
  result.status = StencilStatus::aborted;
  result.message = fmt::format("asked to stop after step {}", step);
}

void say_not_finite(std::int64_t step, StencilResult& result) {
  result.status = StencilStatus::not_finite;
  result.message = fmt::format(
      "a field has NaN or infinity after step {} (given so, or an unstable step). Look at the initial "
      "arrays, or take smaller steps.",
      step);
}

void Stretch::took(std::int64_t steps, double slowest_s) {
  constexpr double wanted_s = 0.1;
  double const factor = std::clamp(wanted_s / std::max(slowest_s, 1e-9), 0.125, 8.0);
  // of fewer steps than were planned only that they took too long is known
  std::int64_t const from = factor < 1 ? steps : std::max(steps, steps_);
  double const longer = factor < 1 || steps >= steps_ ? factor : 1;
  steps_ = rounded(
      static_cast<std::int64_t>(std::min(static_cast<double>(from) * longer, static_cast<double>(most))));
}

}  // namespace hostless
