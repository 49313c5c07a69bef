#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hostless/solve/solver.hpp"

namespace hostless {

/// A solve and what was around it: what `hostless solve` and the Python package report.
struct SolveReport {
  std::string input;  ///< what was solved, for people
  std::int64_t rows = 0, entries = 0;
  Result result;
  std::optional<double> relative_error;  ///< of a manufactured solution
  double time_input_s = 0;               ///< reading or generating, partition, layout
  std::optional<double> read_bandwidth;  ///< bytes a second of all threads of this job on this machine
  std::int64_t peak_rank_bytes = 0;      ///< largest resident set of any process
  std::string output;                    ///< the file that x was written to; may be empty
};

/// For people: some lines of text.
std::string summary(SolveReport const& report);
/// For programs: the object that docs/howto/read-the-result.md describes, `version` 1.
std::string to_json(SolveReport const& report);

/// The largest resident set that this process has had, in bytes.
std::int64_t peak_process_bytes();

}  // namespace hostless
