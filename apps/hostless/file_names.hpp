#pragma once
// What a command reads, and what it writes.

#include <string>
#include <vector>

namespace hostless {

/// A file that the command line names; an empty path: it does not.
struct NamedFile {
  std::string what;  ///< the option, or "the matrix"
  std::string path;
};

/// What is written may neither replace what is read nor what else is written, under whatever name or link.
/// Errors  usage  it would
void check_names(std::vector<NamedFile> const& written, std::vector<NamedFile> const& read);

}  // namespace hostless
