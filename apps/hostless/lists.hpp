#pragma once
// Lists that are one word of the command line: what follows them may be a file.

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/nearest.hpp"
#include "numbers.hpp"

namespace hostless {

/// The words between commas; an empty one where there is nothing between them.
inline std::vector<std::string> words_in(std::string const& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t const end = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

/// Accepts these words and no others.
inline CLI::Validator one_of(std::vector<std::string> const& words) {
  auto refuse = [words](std::string const& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return {};
    return fmt::format("'{}' (it is one of {}).{}", text, fmt::join(words, ", "), did_you_mean(text, words));
  };
  return {refuse, ""};
}

/// Whole numbers between commas, each from `least` to `most`. Throws what CLI11 does for options it refuses.
template <class T>
std::vector<T> numbers_in(std::string const& option, std::string const& text, T least,
                          T most = std::numeric_limits<T>::max()) {
  auto const whole = whole_number(least, most);
  std::vector<T> numbers;
  for (std::string word : words_in(text)) {
    if (std::string const problem = whole(word); !problem.empty())
      throw CLI::ValidationError(option, problem);
    std::from_chars(word.data(), word.data() + word.size(), numbers.emplace_back());
  }
  return numbers;
}

/// One to three whole numbers, each from 1 to `most`: 512,512 or 512x512. Throws as `numbers_in` does.
inline std::vector<std::int64_t> extents_in(std::string const& option, std::string const& text,
                                            std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  std::string list = text;
  std::replace(list.begin(), list.end(), 'x', ',');
  auto const words = words_in(list);
  if (std::find(words.begin(), words.end(), "") != words.end())
    throw CLI::ValidationError(
        option, fmt::format("'{}' (whole numbers stand between commas, or between letters x)", text));
  auto numbers = numbers_in(option, list, std::int64_t{1}, most);
  if (numbers.size() > 3)
    throw CLI::ValidationError(option, fmt::format("'{}' (a grid has up to three axes)", text));
  return numbers;
}

}  // namespace hostless
