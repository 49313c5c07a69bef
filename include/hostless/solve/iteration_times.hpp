#pragma once

#include <cstdint>

namespace hostless {

class Group;

/// Where the time of an iteration goes on a rank, by the clocks of its run: at each moment something computes
/// (`computing_s`), or communication is under way beside which nothing does (`exposed_s`), or neither
/// (`idle_s`), and the three are the iteration. docs/howto/measure.md says what each run sees of them.
struct IterationTimes {
  enum class Clock : std::uint8_t {
    none,
    phases,  ///< of the processor: thread 0's, phase by phase; it sees no arrivals, so no communication_s
    kernel,  ///< of the multiprocessors, inside a persistent kernel
    stamps   ///< of the GPU, between the kernels of a run phase by phase
  };
  Clock clock = Clock::none;
  std::int64_t iterations = 0;  ///< that these are means of
  double iteration_s = 0;
  double computing_s = 0;
  double exposed_s = 0;
  double idle_s = 0;
  /// From the first send to the last arrival of each exchange and sum, whatever lies beside it; 0: there is
  /// none, or this clock does not see it.
  double communication_s = 0;
};
char const* name(IterationTimes::Clock clock);

/// The share of communication that lay beside computing: 1 - exposed / communication, from 0 to 1.
double overlapped(double exposed_s, double communication_s);

/// The same share by three runs: computing alone, communication alone, and both.
/// (computing + communication - whole) / communication, from 0 to 1 (Ismayilov et al. 2023, section 2 and
/// figure 1c, which give the share and no formula).
double overlapped_by_runs(double computing_s, double communication_s, double whole_s);

/// Those of the rank whose share of exposed time is least: for it the others also wait while it computes.
/// Ranks with Clock::none are left out. Collective.
IterationTimes of_all_ranks(Group& group, IterationTimes const& mine);

}  // namespace hostless
