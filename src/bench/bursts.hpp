#pragma once
// Several messages of several pairs of ranks at once: what ping-pongs, node-pongs and bursts have in common.

#include <utility>
#include <vector>

#include "bench/timing.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless::bench {

struct Burst {
  std::vector<std::pair<int, int>> pairs;  ///< of ranks, each rank in one at most; other ranks wait
  std::size_t bytes = 0;                   ///< of each message, at least 1
  int messages = 1;                        ///< that each rank of a pair sends the other
};

/// Seconds until all messages of one side have arrived: half of the time there and back. The first rank of a
/// pair sends all of its messages; the second awaits all, then answers with as many. Bytes are compared in
/// the end, and marks of every message all along.
///
/// Collective; the same on every rank. seconds: of all repeats together, about; steps are counted so that they fit.
/// Errors  usage        ranks that are not there or in two pairs; no bytes, no messages
///         environment  a message brought something else than was sent
///         peer_lost    a rank fell silent past its deadline
/// Cost    2 x messages x bytes of memory a rank
Timing time_burst(Transport& transport, Burst const& burst, double seconds, WaitLimits const& limits);

}  // namespace hostless::bench
