#pragma once
// What ranks of the host pay for messages and sums alone: two of them that answer each other (Ismayilov et
// al. 2023, figure 1b), sums over all ranks.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/timing.hpp"
#include "exchange/gpu/workbench.hpp"
#include "hostless/exchange/exchange.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless::bench {

struct PingPong {
  int first = 0, second = 1;       ///< ranks; the others wait for them
  std::vector<std::size_t> bytes;  ///< of the messages to time, one after the other; each at least 1
  /// Of this rank: messages lie in its GPU's memory, which the transport must take; null: in the host's.
  gpu::Workbench* memory = nullptr;
};
struct PingPongTiming {
  std::size_t bytes = 0;
  int steps = 0;  ///< there and back, of a repeat: fewer than asked for where messages are long
  Timing one_way;
  double bytes_per_s() const { return static_cast<double>(bytes) / one_way.best(); }
};

/// Errors  usage  ranks that are not there, or one and the same; no bytes
void check_ping_pong(PingPong const& what, int ranks);
/// Errors  usage  more or fewer doubles of a sum than are timed
void check_sum_width(int values);

/// Of so many steps, those that are made with messages of so many bytes.
int steps_of(std::size_t bytes, int asked);

/// Messages there and back between two ranks through the verbs of an Endpoint; half of that time is one way.
/// Every answer repeats the mark at both ends of the message that it answers, which is compared; in the end
/// messages of each size bring bytes of their own, and every byte is. In a GPU's memory only that is looked
/// at.
///
/// Collective; the same on every rank.
/// Errors  usage        ranks that are not there, or one and the same; no bytes
///         environment  a message brought something else than was sent
///         peer_lost    one of the two fell silent past its deadline
/// Cost    each repeat carries `steps` messages each way, of long ones 64 MiB, but at least 8
std::vector<PingPongTiming> ping_pong(Transport& transport, PingPong const& what, Protocol const& protocol);

constexpr int widest_sum = 8;  ///< doubles of a sum that is timed

/// Sums of 1 to widest_sum doubles over all ranks, as solves form them; more than Exchange::widest_sum are
/// several sums, one after the other. Each is compared.
///
/// Collective; the same on every rank.
/// Errors  usage        too many values, or Reduction::fast where the transport has no library all-reduce
///         environment  a sum is not what it must be
///         peer_lost    a rank fell silent past its deadline
Timing sum(Transport& transport, int values, Reduction reduction, Protocol const& protocol);

/// The transport's library all-reduce alone: all values in one call, and nothing beside them. What a sum of
/// solves is up against. Errors as `sum` with Reduction::fast.
Timing library_sum(Transport& transport, int values, Protocol const& protocol);

}  // namespace hostless::bench
