#pragma once

#include <algorithm>
#include <string_view>

namespace hostless {

/// Of a text that is for people: what would move a terminal's cursor, or end a line.
inline bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

}  // namespace hostless
