#pragma once
// What messages cost that a queue starts and waits for, with what packs and unpacks them, all of it enqueued
// before the first one (Bridges et al., section VI), beside the same by a host that starts and waits for each
// itself.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "bench/halo.hpp"
#include "bench/timing.hpp"
#include "hostless/queue/queue.hpp"

namespace hostless::bench {

/// Who starts and waits: the queue's work by standard or by ready sends, or the host through an Endpoint.
enum class Driver : std::uint8_t { standard, ready, host };
char const* name(Driver driver);

/// Collective. Errors  usage  on all ranks: no queue of that type, or not between ranks of this transport
void check_queue(Transport& transport, QueueType type);

/// A queue of the type ofi has room for some starts alone: after so many steps of `starts` each it is waited
/// for. Others have room for all.
inline void wait_for_room(Queue& queue, QueueType type, int steps, int starts) {
  constexpr int room = 100;
  if (type == QueueType::ofi && steps % std::max(1, room / starts) == 0) queue.wait();
}

struct QueuePingPong {
  QueueType type = QueueType::automatic;
  int first = 0, second = 1;       ///< ranks; the others wait for them
  std::vector<std::size_t> bytes;  ///< of the messages to time, one after the other; each at least 1
};
struct QueuePingPongTiming {
  std::size_t bytes = 0;
  int steps = 0;  ///< there and back, of a repeat: fewer than asked for where messages are long
  Timing standard, ready, host;  ///< of one way: half of pack, send, unpack, pack, send, unpack
  Timing const& of(Driver driver) const {
    return driver == Driver::standard ? standard : driver == Driver::ready ? ready : host;
  }
};

/// Round trips between two ranks: `first` packs, sends, waits for the answer and unpacks it; `second`
/// unpacks, packs and answers. Packing adds 1 to every byte, so that the last answer says how often all of it
/// went round; it is compared. A ready send's receive was started by the same rank's last act before its own send.
///
/// Collective; the same on every rank.
/// Errors  usage        ranks that are not there, or one and the same; no bytes; a type that these ranks
///                      have not
///         environment  an answer is not what it must be
///         peer_lost    one of the two fell silent past its deadline
std::vector<QueuePingPongTiming> queue_ping_pong(Transport& transport, QueuePingPong const& what,
                                                 Protocol const& protocol);

struct QueueHaloTiming {
  Timing standard, host;  ///< of an exchange: pack, messages, unpack
};
/// The exchange of a plan's patterns, directly between each two ranks, by a queue, and by Exchange
/// (bench::halo, `alone`). Every ghost is compared. Collective; errors as bench::halo.
QueueHaloTiming queue_halo(Transport& transport, Halo const& what, QueueType type, Protocol const& protocol);

}  // namespace hostless::bench
