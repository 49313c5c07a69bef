#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "hostless/plan/summary.hpp"
#include "hostless/solve/provenance.hpp"
#include "hostless/solve/solver.hpp"

namespace hostless {

/// Who sends what to whom in one exchange.
struct Communication {
  std::vector<int> node;           ///< [ranks] the node of each rank
  std::vector<PairTraffic> pairs;  ///< rising by source, then by target
};

/// Of all ranks of a matrix, on each; none with more than 64 ranks, where only `hostless plan` tells.
/// Collective; costs one gather of 24 bytes a pair of ranks.
std::optional<Communication> gather_communication(Matrix const& matrix);

/// A solve and what was around it: what `hostless solve` and the Python package report.
struct SolveReport {
  std::string input;                      ///< what was solved, for people
  std::string right_hand_side = "given";  ///< where b came from
  std::int64_t rows = 0, entries = 0;
  Result result;
  std::optional<double> relative_error;        ///< of a manufactured solution
  double time_input_s = 0;                     ///< reading or generating, partition, layout
  std::optional<double> read_bandwidth;        ///< bytes a second of all threads of this job on this machine
  std::int64_t peak_rank_bytes = 0;            ///< largest resident set of any process
  std::optional<Communication> communication;  ///< none: not gathered, or too many ranks
  Provenance provenance;
  Provenance::Words layout;  ///< layout_settings of what the matrix was made with; may be empty
  std::string output;        ///< the file that x was written to; may be empty
};

/// The report of one of several right-hand sides: its own ending, and what all of them have together.
SolveReport report_of_column(SolveReport const& report, std::size_t column);
/// For people: some lines of text.
std::string summary(SolveReport const& report);
/// For programs: the object that docs/howto/read-the-result.md describes, `version` 1.
std::string to_json(SolveReport const& report);
/// An object in microseconds, its `communication_us` and `overlapped` null where nothing communicates;
/// "null" of Clock::none. docs/howto/measure.md has its members.
std::string to_json(IterationTimes const& times);

/// The largest resident set that this process has had, in bytes.
std::int64_t peak_process_bytes();

}  // namespace hostless
