#pragma once
// The files of machines/, in the library: cmake writes their texts into a source file.

#include <array>
#include <span>
#include <string_view>

namespace hostless {

struct ShippedText {
  std::string_view name, text;
};

extern std::span<ShippedText const> const shipped_texts;

}  // namespace hostless
