#include "hostless/base/deadline.hpp"

#include <cmath>
#include <cstdlib>

namespace hostless {

WaitLimits WaitLimits::from_environment() {
  WaitLimits limits;
  if (char const* text = std::getenv("HOSTLESS_DEADLINE_SCALE")) {
    char* end = nullptr;
    double const scale = std::strtod(text, &end);
    if (end != text && *end == '\0' && std::isfinite(scale) && scale > 0) {
      limits.first_s *= scale;
      limits.later_s *= scale;
    }
  }
  return limits;
}

}  // namespace hostless
