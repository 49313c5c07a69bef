#pragma once
// What the environment says of the library to preload.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"

namespace hostless::preload {

/// What is known of the counts of v-variants: whether they have changed is known to one rank, and all must do
/// alike.
enum class Counts : std::uint8_t {
  unknown,  ///< they are MPI's
  checked,  ///< all ranks ask each other on each call
  fixed,    ///< the user promises that no rank changes those of a call of one communicator
};

/// Equal on all ranks; communicators whose ranks have others are MPI's.
struct Settings {
  bool on = false;
  bool automatic = true;       ///< carried only where that crosses fewer borders of nodes
  std::optional<Route> route;  ///< empty: `automatic_route` of what moves
  int ranks_per_node = 0;      ///< 0: found by host name
  std::int64_t after = 2;      ///< equal calls that are MPI's, before one is carried
  Counts counts = Counts::unknown;
  std::string report;                ///< empty: none; stderr, or a file
  std::string problem;               ///< what could not be read, in words: then nothing is carried
  std::vector<std::string> unknown;  ///< variables of the library's that mean nothing, in words

  /// Of all that ranks must have alike.
  std::uint64_t fingerprint() const;
};

/// Of this process, read once.
Settings const& settings();
/// As the environment has them now.
Settings read_settings();

}  // namespace hostless::preload
