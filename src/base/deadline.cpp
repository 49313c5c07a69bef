#include "hostless/base/deadline.hpp"

#include <cstdlib>

#include "base/deadline_scale.hpp"

namespace hostless {

std::optional<double> deadline_scale(char const* text) {
  char* end = nullptr;
  double const scale = std::strtod(text, &end);
  constexpr double most = 1e6;  // two years of silence: beyond it no wait had a deadline
  if (end == text || *end != '\0' || !(scale > 0 && scale <= most)) return {};
  return scale;
}

WaitLimits WaitLimits::from_environment() {
  WaitLimits limits;
  if (char const* text = std::getenv("HOSTLESS_DEADLINE_SCALE")) {
    double const scale = deadline_scale(text).value_or(1.0);
    limits.first_s *= scale;
    limits.later_s *= scale;
  }
  return limits;
}

}  // namespace hostless
