#pragma once
// What a failed call on a file is: one that is read is the caller's input, whatever is wrong with it; one
// that is written is the machine's.

#include <cerrno>
#include <cstring>
#include <string>

#include "hostless/base/error.hpp"

namespace hostless {

/// From errno, right after the call. Exit code 3 (bad input), whether the file is not there, must not be read
/// or fails; 4 (environment) only where the process may open no more files.
inline Error unreadable(std::string const& path, std::string const& attempt) {
  int const code = errno;
  bool const too_many = code == EMFILE || code == ENFILE || code == ENOMEM;
  bool const no_file = code == ENOENT || code == ENOTDIR || code == ELOOP || code == ENAMETOOLONG;
  return Error(too_many ? ErrorCode::environment : ErrorCode::bad_input,
               path + ": cannot " + attempt + " (" + std::strerror(code) + "). " +
                   (too_many  ? "Raise the limit of open files (ulimit -n)."
                    : no_file ? "Check the name."
                              : "Check permissions and the disk."));
}
/// Exit code 4 (environment), where no folder is, too: it may come and go while ranks compute.
inline Error unwritable(std::string const& path, std::string const& attempt) {
  return Error(ErrorCode::environment, path + ": cannot " + attempt + " (" + std::strerror(errno) +
                                           "). Check the name, permissions, space and the disk.");
}

}  // namespace hostless
