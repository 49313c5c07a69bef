#include "hostless/solve/option_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/nearest.hpp"
#include "solve/option_list.hpp"

namespace hostless {
namespace {

std::string quoted(std::string const& word, Face where) {
  switch (where) {
    case Face::command:
      return word;
    case Face::python:
      return "'" + word + "'";
    case Face::c:
      return '"' + word + '"';
  }
  return word;
}

// "a, b or c".
std::string one_of(std::vector<std::string> const& words) {
  std::string text;
  for (std::size_t k = 0; k < words.size(); ++k)
    text += (k == 0 ? "" : k + 1 < words.size() ? ", " : " or ") + words[k];
  return text;
}

// The limits of types as people write them.
std::string most_of(Option const& option) {
  if (option.most == std::numeric_limits<int>::max()) return "2^31 - 1";
  if (option.most == std::numeric_limits<std::int64_t>::max()) return "2^63 - 1";
  return std::to_string(option.most);
}

bool is_word_of(Option const& option, std::string const& text) {
  if (!option.prefix.empty() && text.starts_with(option.prefix)) return text.size() > option.prefix.size();
  return option.words.empty() ||
         std::find(option.words.begin(), option.words.end(), text) != option.words.end();
}

}  // namespace

bool is_allowed(Option const& option, OptionValue const& value) {
  switch (option.type) {
    case OptionType::word:
      return is_word_of(option, std::get<std::string>(value));
    case OptionType::whole: {
      auto const number = std::get<std::int64_t>(value);
      return number >= option.least && number <= option.most && is_word_of(option, std::to_string(number));
    }
    case OptionType::real: {
      auto const number = std::get<double>(value);
      return number <= option.high && (option.above_low ? number > option.low : number >= option.low);
    }
    case OptionType::file:
    case OptionType::flag:
      return true;
    case OptionType::function:
    case OptionType::job:
      break;
  }
  return false;
}

RunKind Choices::run_kind() const {
  if (has_run) return solve.run.kind;
  return solve.run.gpus > 0 ? RunKind::automatic : RunKind::host;
}

MatrixOptions Choices::matrix_options() const {
  MatrixOptions options = layout.parse(seed, solve.run.gpus);
  options.format.threads = solve.run.threads;
  options.generate_on_gpu = generate_on_gpu;
  return options;
}

std::span<Option const> all_options() {
  static std::vector<Option> const all = list_options();
  return all;
}

Option const* find_option(std::string_view name) {
  for (Option const& one : all_options())
    if (one.name == name) return &one;
  return nullptr;
}

std::string words_of(OptionValue const& value) {
  if (auto const* const flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  return std::visit([](auto const& one) { return fmt::format("{}", one); }, value);
}

std::string Option::standard_at(Face where) const {
  if (!at(where).standard.empty()) return at(where).standard;
  if (!standard.empty() || read == nullptr) return standard;
  std::string const text = words_of(standard_value());
  if (type == OptionType::flag && where == Face::python) return text == "yes" ? "True" : "False";
  if (type == OptionType::flag && where == Face::c) return text == "yes" ? "1" : "0";
  return text;
}

std::string spelled(Face where, Option const& option, OptionValue const& value) {
  std::string const& name = option.at(where).name;
  auto const* const word = std::get_if<std::string>(&value);
  std::string const text = word != nullptr ? quoted(*word, where) : words_of(value);
  switch (where) {
    case Face::command:
      return fmt::format("{} {}", name, text);
    case Face::python:
      return fmt::format("{}={}", name, text);
    case Face::c:
      return fmt::format("options.{}: {}", name, text);
  }
  return name;
}

std::string allowed(Option const& option) {
  constexpr double endless = std::numeric_limits<double>::max();
  switch (option.type) {
    case OptionType::word:
      return "one of " + one_of(option.words);
    case OptionType::whole:
      if (!option.words.empty()) return "one of " + one_of(option.words);
      return fmt::format("a whole number from {} to {}", option.least, most_of(option));
    case OptionType::real:
      if (option.above_low) return fmt::format("a finite number above {}", option.low);
      if (option.high > endless) return fmt::format("a number from {} to inf", option.low);
      if (option.high >= endless) return fmt::format("a finite number from {} on", option.low);
      return fmt::format("a number from {} to {}", option.low, option.high);
    case OptionType::file:
      return "the name of a file";
    case OptionType::flag:
      return "yes or no";
    case OptionType::function:
      return "a function";
    case OptionType::job:
      break;
  }
  return "";
}

void set_option(Choices& choices, Option const& option, OptionValue const& value, Face where) {
  if (!is_allowed(option, value)) {
    std::string const what = spelled(where, option, value);
    if (auto const* const word = std::get_if<std::string>(&value))
      throw Error(ErrorCode::usage, fmt::format("{} (unknown).{} Use {}.", what,
                                                did_you_mean(*word, option.words), one_of(option.words)));
    throw Error(ErrorCode::usage, fmt::format("{} ({} is needed). Correct it.", what, allowed(option)));
  }
  option.write(choices, value);
}

std::vector<std::pair<std::string, std::string>> layout_settings(Choices const& choices) {
  std::vector<std::pair<std::string, std::string>> all;
  for (Option const& one : all_options())
    if (one.of_layout && !one.of_solve && one.read != nullptr)
      all.emplace_back(one.name, words_of(one.read(choices)));
  return all;
}

}  // namespace hostless
