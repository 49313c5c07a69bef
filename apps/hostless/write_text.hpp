#pragma once

#include <sys/stat.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/whole_file.hpp"
#include "hostless/base/error.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// What is written to a file or printed: names of files may hold bytes that are no UTF-8, which are replaced.
inline std::string json_text(nlohmann::ordered_json const& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// Writes `text` to a file, whole or not at all, or to standard output for "-".
/// Errors  environment  the file cannot be written
inline void write_text(std::string const& path, std::string const& text) {
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  write_whole_file(path, text);
}

/// A file that could not be written, and what the library says of others.
inline std::vector<Error> all_unwritten(std::optional<Error> const& file,
                                        std::vector<std::string> const& others) {
  std::vector<Error> all;
  if (file) all.push_back(*file);
  for (std::string const& problem : others) all.emplace_back(ErrorCode::environment, problem);
  return all;
}

/// What could not be written, all of it, when everything else has been. Errors  that of the first, if any
inline void tell_unwritten(std::vector<Error> const& all) {
  if (all.empty()) return;
  std::string text;
  for (Error const& one : all) text += (text.empty() ? "" : " ") + std::string(one.what());
  throw Error(all.front().code(), text);
}

/// Calls write(); what it could not write is told with the others.
template <class Write>
void write_or_keep(std::vector<Error>& unwritten, Write const& write) {
  try {
    write();
  } catch (Error const& problem) {
    unwritten.push_back(problem);
  }
}

/// Whether a reader sets the pace of what rank 0 writes there: a pipe, a terminal, another program's input.
/// Collective.
inline bool is_paced(Group& group, std::string const& path) {
  struct stat now {};
  bool const special = ::stat(path.c_str(), &now) == 0 && (S_ISFIFO(now.st_mode) || S_ISSOCK(now.st_mode));
  return group.any(group.rank() == 0 && (path == "-" || special));
}

/// Calls write() on all ranks. What cannot be written ends all alike; only where a reader sets the pace
/// nobody waits for the one that writes. Collective.
template <class Write>
void write_together(Group& group, std::string const& path, Write const& write) {
  if (!is_paced(group, path)) return group.together(write);
  write();
}

}  // namespace hostless
