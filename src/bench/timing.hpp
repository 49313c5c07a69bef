#pragma once
// How something is timed that all ranks do together (Trotter et al., section 4.1.4): some steps before,
// all ranks meet, steps, and the slowest rank counts.

#include <algorithm>
#include <chrono>
#include <vector>

#include "hostless/base/deadline.hpp"
#include "hostless/transport/group.hpp"

namespace hostless::bench {

struct Protocol {
  int warm_up = 10;  ///< steps before the first repeat
  int steps = 1000;  ///< of a repeat
  int repeat = 5;
  WaitLimits limits = WaitLimits::from_environment();
};

struct Timing {
  std::vector<double> step_s;  ///< rising; of each repeat the mean time of a step, of the slowest rank
  double best() const { return step_s.front(); }
  double median() const { return step_s[step_s.size() / 2]; }
  double worst() const { return step_s.back(); }
};

/// Collective.
/// Errors  peer_lost  a rank did not come to the beginning or to the end of a repeat; all that `step` throws
template <class Step>
Timing time_steps(Group& group, Protocol const& protocol, Step&& step) {
  for (int k = 0; k < protocol.warm_up; ++k) step();
  Timing timing;
  for (int round = 0; round < protocol.repeat; ++round) {
    group.barrier();
    auto const begin = Clock::now();
    for (int k = 0; k < protocol.steps; ++k) step();
    double const seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    timing.step_s.push_back(group.max(seconds) / protocol.steps);
  }
  std::sort(timing.step_s.begin(), timing.step_s.end());
  return timing;
}

}  // namespace hostless::bench
