#pragma once

#include <cstdint>
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

/// Whether a text is a whole number from 0 on that 64 bits hold.
inline bool is_count(char const* text) {
  char* end = nullptr;
  return *text >= '0' && *text <= '9' && std::strtoll(text, &end, 10) < INT64_MAX && *end == '\0';
}
/// A whole number from 0 on; what is none leaves it as it is without.
inline std::int64_t count_of(char const* variable, std::int64_t otherwise) {
  char const* const text = std::getenv(variable);
  return text != nullptr && is_count(text) ? std::strtoll(text, nullptr, 10) : otherwise;
}

}  // namespace hostless
