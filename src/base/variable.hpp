#pragma once

#include <cstdlib>
#include <cstring>

namespace hostless {

/// Whether an environment variable is 1; header-only, for the GPU libraries too.
inline bool is_one(char const* variable) {
  char const* const text = std::getenv(variable);
  return text != nullptr && std::strcmp(text, "1") == 0;
}

}  // namespace hostless
