#pragma once

#include <optional>

namespace hostless {

/// The number in HOSTLESS_DEADLINE_SCALE's text, if it is one that deadlines can be multiplied by.
std::optional<double> deadline_scale(char const* text);

}  // namespace hostless
