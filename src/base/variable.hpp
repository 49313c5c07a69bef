#pragma once

#include <cstdlib>
#include <cstring>

namespace hostless {

/// Whether an environment variable is that word; header-only, for the GPU libraries too.
inline bool is_word(char const* variable, char const* word) {
  char const* const text = std::getenv(variable);
  return text != nullptr && std::strcmp(text, word) == 0;
}
/// Switches: 1 is on, 0 is off, and what is neither leaves them as they are without.
inline bool is_one(char const* variable) { return is_word(variable, "1"); }
inline bool is_zero(char const* variable) { return is_word(variable, "0"); }

}  // namespace hostless
