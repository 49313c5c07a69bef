#pragma once
// Commands that this one runs to learn something from them: this program again, or a launcher of it.

#include <string>
#include <utility>
#include <vector>

namespace hostless {

/// This program, whatever a PATH may find. Empty: the system does not say.
std::string this_program();

struct ChildCommand {
  std::vector<std::string> words;                                ///< program (searched in PATH) and arguments
  std::vector<std::pair<std::string, std::string>> environment;  ///< beside this process's
  bool is_heard = false;  ///< what it prints is kept; else it goes nowhere
  double longest_s = 120;
  /// Between two looks whether it has ended; 0: as all waits. What is timed is not to be kept from its processors.
  double nap_s = 0;
};
/// What became of it.
struct ChildEnd {
  int code = 0;         ///< that it ended with by itself
  std::string problem;  ///< why it did not; empty: it did
  std::string output, errors;
};

/// Runs it beside this process's streams and with nothing to read, in a group of its own, which goes with
/// this process and is ended when the time is over.
/// Errors  environment  what it prints can be kept nowhere
ChildEnd run_quietly(ChildCommand const& command);

}  // namespace hostless
