#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace hostless {

/// What kind of thing went wrong; decides the exit code of the command line and the status of the C
/// interface.
enum class ErrorCode : int {
  usage = 2,        ///< the caller asked for something that does not exist, or does not fit
  bad_input = 3,    ///< a file or an array holds something it must not hold, or the file cannot be read
  environment = 4,  ///< the machine lacks something: memory, a library, permission for a file
  peer_lost = 5,    ///< another rank stayed silent past the deadline or left
  aborted = 6,      ///< somebody asked for the work to stop
};

/// The one exception type of the library.
///
/// The text follows one grammar: `<problem> (<why it matters>). <what to do>`, with the offending value and,
/// for user input, file and line in front.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string const& text) : std::runtime_error(text), code_(code) {}
  ErrorCode code() const { return code_; }
  /// The documented exit code of the command line: 2 usage, 3 bad input, 4 everything the machine or a peer
  /// did.
  int exit_code() const { return static_cast<int>(code_) > 4 ? 4 : static_cast<int>(code_); }

 private:
  ErrorCode code_;
};

}  // namespace hostless
