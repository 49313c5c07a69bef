#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"
#include "hostless/plan/routes.hpp"

namespace hostless {

/// The plans of all ranks with what they were made from, so that whoever loads them can prove them
/// (checker.hpp).
struct PlanSet {
  PlanOptions options;
  std::vector<Pattern> patterns;    ///< [ranks]
  std::vector<ExchangePlan> plans;  ///< [ranks], of one route, node map and fingerprint
  /// [ranks][ghosts], or nothing: which of the ghosts as somebody has named them lies where, where that is no
  /// part of the patterns because they lie around the owned items. No plan depends on it.
  std::vector<std::vector<std::int32_t>> named = {};
};

/// JSON, versioned (ExchangePlan::current_version), the same text for equal sets.
/// Errors  usage  a set whose plans are not one of each rank, or not of one route and node map
std::string write_plans(PlanSet const& set);

/// Reads what write_plans wrote. Every number, count, id and range is checked; memory follows what the text
/// holds, never what it claims (each plan has a node map of its own: ranks squared). What holds between
/// ranks, and the fingerprint, is left to `check` and `load_plans`.
///
/// name    stands in front of error texts
/// Errors  bad_input  `name:line: ...` for text that is no JSON, `name: $.plans[2].stages[0]: ...` for what
/// it says
PlanSet read_plans(std::string_view text, std::string const& name);

/// The file gets its name when it is whole.
/// Errors  environment  the file cannot be written
void save_plans(std::string const& path, PlanSet const& set);

/// read_plans of a file; also compares the fingerprint with the one of the patterns and names that the file
/// holds.
/// Errors  bad_input  as read_plans; a fingerprint that does not fit; it cannot be opened or read, or is no
/// regular file
PlanSet load_plans(std::string const& path);

}  // namespace hostless
