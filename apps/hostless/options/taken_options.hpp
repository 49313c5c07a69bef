#pragma once
// Options of the one table (option_table.hpp) as a subcommand takes them.

#include <cstdint>
#include <map>
#include <string>

#include "hostless/solve/option_table.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hostless {

/// What was given. Numbers are looked at when the command line is read, words when `put_into` is called:
/// under mpirun one rank tells what is wrong with them.
class TakenOptions {
 public:
  /// All of a group that the command has, in the order of the table.
  void add(CLI::App& command, OptionGroup group);
  CLI::Option* add(CLI::App& command, Option const& option);
  /// As if it had been given.
  void say(std::string const& name, OptionValue value) { given_[name] = std::move(value); }
  bool is_given(std::string const& name) const { return given_.count(name) > 0; }
  std::string word(std::string const& name) const { return std::get<std::string>(now(name)); }
  int number(std::string const& name) const { return static_cast<int>(std::get<std::int64_t>(now(name))); }
  double real(std::string const& name) const { return std::get<double>(now(name)); }
  bool flag(std::string const& name) const { return std::get<bool>(now(name)); }
  /// Errors  usage  values that an option cannot have
  void put_into(Choices& choices) const;

 private:
  /// As given, else the default.
  OptionValue now(std::string const& name) const;

  std::map<std::string, OptionValue> given_;  // by Option::name
};

}  // namespace hostless
