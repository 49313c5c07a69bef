#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "hostless/base/error.hpp"

namespace hostless {

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
