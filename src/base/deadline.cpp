#include "hostless/base/deadline.hpp"

#include <cmath>
#include <cstdlib>

#include "base/deadline_scale.hpp"

namespace hostless {

std::optional<double> deadline_scale(char const* text) {
  char* end = nullptr;
  double const scale = std::strtod(text, &end);
  if (end == text || *end != '\0' || !std::isfinite(scale) || scale <= 0) return {};
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
