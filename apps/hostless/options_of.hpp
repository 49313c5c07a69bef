#pragma once
// The options of a subcommand as words, for whoever wants to make its figures again.

#include <CLI/CLI.hpp>
#include <string>

#include "hostless/solve/provenance.hpp"

namespace hostless {

/// This process, with the options of `command` as they were given and the values that they have now; those
/// without one, which the program chooses, are left out.
inline Provenance provenance_of(CLI::App& command) {
  Provenance p = find_provenance();
  for (CLI::Option* option : command.get_options()) {
    std::string const key = option->get_name();
    if (key == "--help") continue;
    std::string given;
    for (std::string const& word : option->results()) given += (given.empty() ? "" : " ") + word;
    if (option->count() > 0) p.options_given.emplace_back(key, given);
    if (option->get_expected_max() == 0) {  // a flag
      p.options.emplace_back(key, option->count() > 0 ? "true" : "false");
      continue;
    }
    option->capture_default_str();  // the variable's value
    std::string const now = option->get_default_str();
    std::string const& value = now.empty() ? given : now;
    if (!value.empty() || option->count() > 0) p.options.emplace_back(key, value);
  }
  return p;
}

}  // namespace hostless
