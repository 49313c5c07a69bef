#pragma once
// How much of an iteration's communication lay beside computing: by the clocks of the run itself, and by
// three runs, as Ismayilov et al. have it. docs/howto/measure.md defines both.

#include <nlohmann/json.hpp>
#include <string>

#include "alone.hpp"

namespace hostless {

struct Overlap {
  IterationTimes by_clock;              ///< Clock::none: clock_problem says why
  std::vector<double> communication_s;  ///< alone, rising; empty: it was not timed
  std::vector<double> computing_s;      ///< alone, rising; empty: runs_problem says why
  double whole_s = 0;                   ///< the median of the timed solves
  std::string clock_problem, runs_problem;

  /// Of the processor's runs, whose clock sees no arrivals, that of the communication alone.
  double communication() const {
    if (by_clock.communication_s > 0 || communication_s.empty()) return by_clock.communication_s;
    return communication_s[communication_s.size() / 2];
  }
};

class OverlapBench {
 public:
  /// All of it lives as long.
  OverlapBench(LaidOut const& laid_out, std::uint64_t seed)
      : at_(laid_out), communication_(laid_out), computing_(laid_out, seed) {}
  CommunicationAlone& communication() { return communication_; }

  /// Of a way that has been solved and timed: result, of its last solve; whole_s, the median time of an
  /// iteration; b in local order. On GPUs one more solve of at most 300 iterations is traced. Collective.
  /// Errors  peer_lost; all others become the problems of what is returned
  Overlap measure(SolveOptions const& how, Result const& result, double whole_s,
                  std::vector<double> const& b);

 private:
  IterationTimes traced(SolveOptions how, std::vector<double> const& b) const;

  LaidOut at_;
  CommunicationAlone communication_;
  ComputingAlone computing_;
};

/// What reports say of a way: `communication_us`, `exposed_us` and `overlapped` by its clock where there is
/// a share, and `overlap` with both measures.
void add_overlap(Overlap const& overlap, nlohmann::ordered_json& row);
/// A few words for a table's line; empty where there is no share.
std::string words_of(Overlap const& overlap);

}  // namespace hostless
