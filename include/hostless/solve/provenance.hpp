#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hostless {

/// Where, when and by which programs figures came about: what it takes to make them again.
struct Provenance {
  using Words = std::vector<std::pair<std::string, std::string>>;
  std::string date;                  ///< of `find_provenance`, UTC, ISO 8601
  std::vector<std::string> command;  ///< the words that this process was started with
  Words options_given, options;      ///< those of the command line, and all with the values they have come to
  Words environment;                 ///< variables of hostless that are set
  std::string host, processor;
  Words libraries;  ///< what those that carry between ranks say of themselves; empty: not loaded here
  Words versions;   ///< of hostless, of what compiled it, of the C library and the kernel
};

/// Of this process; without the options, which its command knows. Local.
Provenance find_provenance();

/// One JSON object, the same in results of solves and in reports of `bench`.
std::string to_json(Provenance const& provenance);

}  // namespace hostless
