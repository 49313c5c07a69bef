#include "hostless/solve/option_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

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

// As the face writes it.
std::string written(Face where, Option const& option, OptionValue const& value) {
  if (auto const* const flag = std::get_if<bool>(&value)) {
    if (where == Face::python) return *flag ? "True" : "False";
    if (where == Face::c) return *flag ? "1" : "0";
  }
  auto const* const word = std::get_if<std::string>(&value);
  if (word == nullptr) return words_of(value);
  if (!option.at(where).is_number) return quoted(*word, where);
  auto const at = std::find(option.words.begin(), option.words.end(), *word);
  return std::to_string(at - option.words.begin());
}

std::string named(Face where, Option const& option) {
  return (where == Face::c ? "options." : "") + option.at(where).name;
}

std::string with_value(Face where, Option const& option, std::string const& value) {
  char const* const between = where == Face::command ? " " : where == Face::python ? "=" : ": ";
  return named(where, option) + between + value;
}

// A value that the option can have, at the start of the text; else empty.
std::string_view value_at(std::string_view text, Option const& option) {
  std::size_t end = 0;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '-'))
    ++end;
  std::string_view const value = text.substr(0, end);
  bool const is_number = !value.empty() && value.find_first_not_of("0123456789") == std::string_view::npos;
  bool const is_word = option.type == OptionType::flag
                           ? value == "yes" || value == "no"
                           : std::find(option.words.begin(), option.words.end(), value) != option.words.end();
  bool const takes_words = option.type == OptionType::word || option.type == OptionType::flag;
  return (takes_words ? is_word : is_number) ? value : std::string_view();
}

std::string written(Face where, Option const& option, std::string_view value) {
  if (option.type == OptionType::flag) return written(where, option, OptionValue(value == "yes"));
  if (option.type == OptionType::word) return written(where, option, OptionValue(std::string(value)));
  return std::string(value);
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
  OptionValue const value = standard_value();
  return type == OptionType::flag ? written(where, *this, value) : words_of(value);
}

std::string spelled(Face where, Option const& option, OptionValue const& value) {
  return with_value(where, option, written(where, option, value));
}

std::string respelled(Face where, std::string text) {
  for (Option const& one : all_options()) {
    std::string const& theirs = one.at(Face::command).name;
    if (theirs.empty() || one.write == nullptr || one.at(where).name.empty()) continue;
    for (std::size_t at = 0; (at = text.find(theirs, at)) != std::string::npos;) {
      std::size_t const end = at + theirs.size();
      char const before = at == 0 ? ' ' : text[at - 1], after = end == text.size() ? ' ' : text[end];
      bool const is_whole =
          std::strchr(" (`'", before) != nullptr && std::strchr(" ).,:;`'", after) != nullptr;
      if (!is_whole) {
        at = end;
        continue;
      }
      std::string_view const value =
          after == ' ' ? value_at(std::string_view(text).substr(std::min(end + 1, text.size())), one)
                       : std::string_view();
      std::string const mine =
          value.empty() ? named(where, one) : with_value(where, one, written(where, one, value));
      text.replace(at, theirs.size() + (value.empty() ? 0 : value.size() + 1), mine);
      at += mine.size();
    }
  }
  return text;
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
