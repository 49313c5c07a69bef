#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace hostless::test {

/// Whether of many alike cases, random programs or repeats only some are tried: where HOSTLESS_TEST_SAMPLE=1, as
/// tools/sanitize.sh has it without --all. A sanitizer looks at what code does, which few of them show it; what comes out of all
/// is for the release build.
inline bool is_sample() {
  static char const* const text = std::getenv("HOSTLESS_TEST_SAMPLE");
  return text != nullptr && std::string_view(text) == "1";
}

/// How many.
template <class Number>
Number of_all(Number all, Number sample) {
  return is_sample() ? sample : all;
}

/// Whether the case of this number is tried: all, or every `step`th. With a sum of two indices every value of either comes.
inline bool is_tried(std::size_t number, std::size_t step) { return !is_sample() || number % step == 0; }

}  // namespace hostless::test
