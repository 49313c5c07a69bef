#pragma once
// What is known of the paths between GPUs after something has moved over them. Both sides of the loader
// include it.

#include <cstddef>
#include <string>
#include <vector>

namespace hostless::gpu {

/// A kernel of GPU `from` that stores into the memory of GPU `to`, as seen by moving data.
struct PathFacts {
  int from = 0, to = 0;
  std::string problem;        ///< why there is no such path; empty: all that was stored has arrived
  double flagged_word_s = 0;  ///< from a store to its being seen there: half of flagged words there and back
  double bytes_per_s = 0;     ///< of stores by all multiprocessors
};

/// Messages there and back between a kernel of GPU `first` and one of `second`, which may be the same.
struct PingPongRequest {
  int first = 0, second = 1;
  std::size_t bytes = 8;  ///< of a message, a multiple of 8
  /// Values as flagged words that say for themselves when they have arrived; else as they are, with one
  /// flagged word behind them and fences of the whole system.
  bool by_flagged_words = true;
  int warm_up = 0, steps = 1, repeat = 1;  ///< there and back
  double deadline_s = 10;                  ///< of one wait
};
struct PingPongFacts {
  std::string problem;  ///< why there are no times: no path, or a message that came late or brought another
                        ///< one's values
  std::vector<double> clock_s, events_s;  ///< one way, of each repeat: by the kernel's own clock, by events
};

}  // namespace hostless::gpu
