#pragma once
// What messages cost that GPUs' streams start and wait for (queues of the type peer), with the kernels that
// pack and unpack them, all of it enqueued before the first one, or in graphs (Bridges et al., section VI).

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/queue_messages.hpp"

namespace hostless::bench {

struct PeerPingPong {
  int gpus = 1;                    ///< rank r uses GPU r % gpus
  int first = 0, second = 1;       ///< ranks; the others wait for them
  std::vector<std::size_t> bytes;  ///< of the messages to time, one after the other; each at least 1
  bool by_stream = true, by_graph = true;
  bool with_processor = false;  ///< PeerPingPongTiming::processor
};
/// All of it queued before one word releases it: what processors had to do until it was done.
struct ProcessorTime {
  std::int64_t trips = 0;  ///< none: ranks share a GPU
  double wall_s = 0;
  double busy_s = 0;  ///< of all threads of this process together
};
struct PeerPingPongTiming {
  std::size_t bytes = 0;
  Driver driver = Driver::standard;  ///< by standard or by ready sends
  bool by_graph = false;
  int steps = 0;  ///< there and back, of a repeat: fewer than asked for where messages are long
  ProcessorTime processor;
  Timing round_trip;  ///< pack, send, wait and unpack on each side: four kernels of each
};

/// Round trips between two ranks. Packing and unpacking add 1 to every byte, so that the last answer says how
/// often all of it went round; it is compared. In graphs there are 20 round trips.
///
/// A rank's start of its next receive is one with that of its send, and its wait for its send is one with
/// that for the answer. Ready sends are promised nothing else than this program gives: the target was
/// unpacked before the message was sent that the answer follows.
///
/// Processor time is measured once more, after the repeats: a kernel holds each stream until as many round trips
/// are queued as a driver takes without being asked to wait (some hundred, or replays of a graph of 200).
///
/// Collective; the same on every rank.
/// Errors  usage        ranks that are not there, or one and the same; no bytes
///         environment  an answer is not what it must be; no such GPU, or none can be used
///         peer_lost    one of the two fell silent past its deadline
///         QueueError unsupported  ranks are processes
std::vector<PeerPingPongTiming> peer_ping_pong(Transport& transport, PeerPingPong const& what,
                                               Protocol const& protocol);

}  // namespace hostless::bench
