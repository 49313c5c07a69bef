#pragma once
// What a failed call on a file is: a name to read from that leads to no file is the caller's mistake, all
// else the machine's.

#include <cerrno>
#include <cstring>
#include <string>

#include "hostless/base/error.hpp"

namespace hostless {

/// From errno, right after the call. Exit code 2 (usage) where there is no such file, else 4 (environment).
inline Error unreadable(std::string const& path, std::string const& attempt) {
  int const code = errno;
  bool const no_file = code == ENOENT || code == ENOTDIR || code == EISDIR;
  return Error(no_file ? ErrorCode::usage : ErrorCode::environment,
               path + ": cannot " + attempt + " (" + std::strerror(code) + "). " +
                   (no_file ? "Check the name." : "Check permissions and the disk."));
}
/// Exit code 4 (environment), where no folder is, too: it may come and go while ranks compute.
inline Error unwritable(std::string const& path, std::string const& attempt) {
  return Error(ErrorCode::environment, path + ": cannot " + attempt + " (" + std::strerror(errno) +
                                           "). Check the name, permissions, space and the disk.");
}

}  // namespace hostless
