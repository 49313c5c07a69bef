#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "hostless/base/error.hpp"

namespace hostless {

/// Whether `path` could be written, found out before the work whose result goes there. Leaves an older file
/// as it is and a new one away.
/// Errors  environment  it could not
inline void check_writable(std::string const& path) {
  struct stat now {};
  bool const special = ::stat(path.c_str(), &now) == 0 && !S_ISREG(now.st_mode) && !S_ISDIR(now.st_mode);
  bool good = false;
  if (special) {
    good = ::access(path.c_str(), W_OK) == 0;  // the reader of a pipe would see it opened and closed
  } else {
    int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0) {
      ::unlink(path.c_str());
    } else if (errno == EEXIST) {
      file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    }
    good = file >= 0;
    if (good) ::close(file);
  }
  if (!good) {
    throw Error(ErrorCode::environment,
                fmt::format("{}: cannot be written: {} (the result would be lost). Name a file in a folder "
                            "where you may write.",
                            path, std::strerror(errno)));
  }
}

/// Writes `text` to a file, or to standard output for "-".
/// Errors  environment  the file cannot be written
inline void write_text(std::string const& path, std::string const& text) {
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  std::FILE* file = std::fopen(path.c_str(), "w");
  bool const good = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  bool const closed = file != nullptr && std::fclose(file) == 0;
  if (!good || !closed) {
    throw Error(ErrorCode::environment,
                fmt::format("{}: cannot be written: {}.", path, std::strerror(errno)));
  }
}

}  // namespace hostless
