#pragma once
// What CLI11 lets pass: it cuts whole numbers that are too long to the largest one, without a word.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "base/processors.hpp"

namespace hostless {

/// Of a whole number with zeros in front, which CLI11 takes for octal: why no option takes it. Else empty.
inline char const* why_no_zeros(std::string const& text) {
  std::size_t const digits = text.find_first_not_of('-');
  bool const has_zeros = digits != std::string::npos && text[digits] == '0' && digits + 1 < text.size() &&
                         text.find_first_not_of("0123456789", digits) == std::string::npos;
  return has_zeros ? ", without leading zeros" : "";
}

/// Accepts whole numbers from `least` to `most`, or to the largest that T holds; why_no_zeros.
template <class T>
CLI::Validator whole_number(T least, T most = std::numeric_limits<T>::max()) {
  auto refuse = [least, most](std::string& text) -> std::string {
    T value{};
    char const* const end = text.data() + text.size();
    auto const [stop, problem] = std::from_chars(text.data(), end, value);
    std::string const zeros = why_no_zeros(text);
    if (problem == std::errc() && stop == end && zeros.empty() && value >= least && value <= most) return {};
    return fmt::format("'{}' (a whole number from {} to {} is needed{})", text, least, most, zeros);
  };
  return {refuse, ""};
}

/// Of seeds: what options of all faces hold.
constexpr std::uint64_t most_seed = std::numeric_limits<std::int64_t>::max();

/// Accepts finite numbers above zero, or also zero.
inline CLI::Validator real_number(bool zero_too) {
  auto refuse = [zero_too](std::string& text) -> std::string {
    char* stop = nullptr;
    double const value = std::strtod(text.c_str(), &stop);
    bool const number = !text.empty() && *stop == '\0' && std::isfinite(value);
    if (number && (value > 0 || (zero_too && value == 0))) return {};
    return fmt::format("'{}' (a finite number {} is needed)", text, zero_too ? "from 0 on" : "above 0");
  };
  return {refuse, ""};
}

}  // namespace hostless
