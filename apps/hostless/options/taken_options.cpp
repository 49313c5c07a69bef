#include "options/taken_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>

#include "lists.hpp"
#include "numbers.hpp"

namespace hostless {
namespace {

// With the words that it can be, where the meaning does not name them all, and the default that follows from
// something else.
std::string help_of(Option const& option) {
  auto const is_named = [&](std::string const& word) {
    return option.meaning.find(word) != std::string::npos;
  };
  std::string text = option.meaning;
  if (!std::all_of(option.words.begin(), option.words.end(), is_named))
    text += ": " + allowed(option).substr(std::string("one of ").size());
  if (option.type == OptionType::flag) text += ": yes or no";
  return option.standard.empty() ? text : fmt::format("{} [{}]", text, option.standard);
}

// What CLI11 refuses by itself, before anybody has a rank.
CLI::Validator check_of(Option const& option) {
  auto const refuse = [&option](std::string& text) -> std::string {
    OptionValue value;
    char const* const end = text.data() + text.size();
    if (option.type == OptionType::whole) {
      std::int64_t number = 0;
      auto const [stop, problem] = std::from_chars(text.data(), end, number);
      std::string const zeros = why_no_zeros(text);
      if (problem != std::errc() || stop != end || !zeros.empty())
        return fmt::format("'{}' ({} is needed{})", text, allowed(option), zeros);
      value = number;
    } else {
      char* stop = nullptr;
      double const number = std::strtod(text.c_str(), &stop);
      if (text.empty() || *stop != '\0') return fmt::format("'{}' ({} is needed)", text, allowed(option));
      value = number;
    }
    return is_allowed(option, value) ? "" : fmt::format("'{}' ({} is needed)", text, allowed(option));
  };
  return {refuse, ""};
}

bool is_yes(std::string const& text) { return text == "yes" || text == "on" || text == "true"; }
// Nothing is near to a flag's word but its opposite: no suggestion.
std::string refuse_flag(std::string const& text) {
  if (is_yes(text) || text == "no" || text == "off" || text == "false") return "";
  return fmt::format("'{}' (it is yes or no; on, off, true and false are taken too)", text);
}

OptionValue value_of(Option const& option, std::string const& text) {
  if (option.type == OptionType::whole) return std::int64_t{std::strtoll(text.c_str(), nullptr, 10)};
  if (option.type == OptionType::real) return std::strtod(text.c_str(), nullptr);
  if (option.type == OptionType::flag) return is_yes(text);
  return text;
}

char const* type_name(OptionType type) {
  return type == OptionType::whole ? "INT" : type == OptionType::real ? "FLOAT" : "TEXT";
}

}  // namespace

void TakenOptions::add(CLI::App& command, OptionGroup group) {
  for (Option const& one : all_options()) {
    std::string const& name = one.at(Face::command).name;
    bool const is_own = one.group == group && one.write != nullptr && !name.empty();
    if (is_own && command.get_option_no_throw(name) == nullptr)
      add(command, one);  // --seed is the problem's too
  }
}

CLI::Option* TakenOptions::add(CLI::App& command, Option const& option) {
  std::string const& name = option.at(Face::command).name;
  bool const is_flag = option.type == OptionType::flag;
  if (is_flag && !std::get<bool>(option.standard_value()))
    return command.add_flag_callback(
        name, [this, &option] { say(option.name, true); }, option.meaning);
  auto* const added = command.add_option_function<std::string>(
      name, [this, &option](std::string const& text) { say(option.name, value_of(option, text)); },
      help_of(option));
  added->type_name(type_name(option.type));
  if (is_flag) added->check(CLI::Validator(refuse_flag, ""));
  if (option.type == OptionType::whole || option.type == OptionType::real) added->check(check_of(option));
  // For --help, and for whoever wants to know what it came to.
  added->default_function([this, &option]() -> std::string {
    if (!is_given(option.name) && !option.standard.empty()) return "";
    OptionValue const value = now(option.name);
    if (option.type == OptionType::flag) return std::get<bool>(value) ? "yes" : "no";
    return words_of(value);
  });
  added->capture_default_str();
  return added;
}

OptionValue TakenOptions::now(std::string const& name) const {
  auto const found = given_.find(name);
  return found != given_.end() ? found->second : find_option(name)->standard_value();
}

void TakenOptions::put_into(Choices& choices) const {
  for (Option const& one : all_options())
    if (auto const found = given_.find(one.name); found != given_.end())
      set_option(choices, one, found->second, Face::command);
}

}  // namespace hostless
