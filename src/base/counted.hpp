#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace hostless {

/// "1 step", "0 steps", "3 boxes" (many: "boxes"; without it an s behind the one).
template <std::integral Number>
std::string counted(Number count, std::string_view one, std::string_view many = {}) {
  std::string text = std::to_string(count) + " ";
  if (count == 1 || many.empty()) text += one;
  if (count != 1) text += many.empty() ? "s" : many;
  return text;
}

}  // namespace hostless
