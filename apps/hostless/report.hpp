#pragma once
// What a solve reports: a summary for people, JSON for programs.

#include <optional>
#include <string>

#include "hostless/solve/solver.hpp"

namespace hostless {

struct SolveReport {
  std::string input;
  std::int64_t rows = 0, entries = 0;
  Result result;
  std::optional<double> relative_error;  ///< of a manufactured solution
  double time_input_s = 0;               ///< reading or generating, partition, layout
  std::optional<double> read_bandwidth;  ///< bytes a second of all threads of this job on this machine
  std::int64_t peak_rank_bytes = 0;      ///< largest resident set of any process
  std::string output;
};

std::string summary(SolveReport const& report);
std::string to_json(SolveReport const& report);

}  // namespace hostless
