#pragma once
// How something is timed that all ranks do together (Trotter et al., section 4.1.4): some steps before,
// all ranks meet, steps, and the slowest rank counts.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <vector>

#include "hostless/base/deadline.hpp"
#include "hostless/base/error.hpp"
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

/// The median of a sample and the interval that holds that of all with 95 % certainty, whatever they are spread
/// like: the k-th smallest and the k-th largest value, k the most for which 2 P(B < k) <= 5 %, B binomial of
/// n and 1/2. Of fewer than 6 values there is none: from 0 to infinity.
struct MedianBound {
  double median = 0, low = 0, high = std::numeric_limits<double>::infinity();
};

/// values  not empty, in any order, none negative
inline MedianBound median_bound(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::size_t const n = values.size();
  MedianBound bound;
  bound.median = (values[(n - 1) / 2] + values[n / 2]) / 2;
  double term = std::ldexp(1.0, -static_cast<int>(n)), below = term;  // P(B = k), P(B <= k)
  for (std::size_t k = 0; 2 * below <= 0.05; ++k) {
    bound.low = values[k];
    bound.high = values[n - 1 - k];
    term *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    below += term;
  }
  return bound;
}

/// What a rank does between collectives, until something goes wrong for it alone: then nothing any more, so that it
/// comes to the collectives all the same, and in the end all ranks throw one error. A loss is thrown at once.
class UntilFailed {
 public:
  template <class Work>
  void operator()(Work&& work) {
    if (failed_) return;
    try {
      work();
    } catch (Error const& error) {
      if (error.code() == ErrorCode::peer_lost || error.code() == ErrorCode::aborted) throw;
      failed_ = std::current_exception();
    }
  }
  /// Collective. Errors  what the lowest rank threw that did
  void agree(Group& group) {
    group.together([this] {
      if (failed_) std::rethrow_exception(failed_);
    });
  }

 private:
  std::exception_ptr failed_;
};

/// prepare() before all ranks meet, not timed; then run(steps), which is over when they are done.
///
/// group  a Group, or what else has barrier() and max(double) of all ranks and ends earlier where one is lost
/// Collective.
/// Errors  peer_lost  a rank did not come to the beginning or to the end of a repeat; all that both throw
template <class Ranks, class Prepare, class Run>
Timing time_runs(Ranks& group, Protocol const& protocol, Prepare&& prepare, Run&& run) {
  auto const timed = [&](int steps) {
    prepare();
    group.barrier();
    auto const begin = Clock::now();
    run(steps);
    return group.max(std::chrono::duration<double>(Clock::now() - begin).count());
  };
  if (protocol.warm_up > 0) timed(protocol.warm_up);
  Timing timing;
  for (int round = 0; round < protocol.repeat; ++round)
    timing.step_s.push_back(timed(protocol.steps) / protocol.steps);
  std::sort(timing.step_s.begin(), timing.step_s.end());
  return timing;
}

/// As time_runs, a step after the other.
template <class Ranks, class Step>
Timing time_steps(Ranks& group, Protocol const& protocol, Step&& step) {
  for (int k = 0; k < protocol.warm_up; ++k) step();
  Protocol warm = protocol;
  warm.warm_up = 0;
  return time_runs(
      group, warm, [] {},
      [&](int steps) {
        for (int k = 0; k < steps; ++k) step();
      });
}

}  // namespace hostless::bench
