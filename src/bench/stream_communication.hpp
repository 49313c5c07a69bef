#pragma once
// What ranks on GPUs pay for messages, exchanges and the parts of sums on streams: the stream faces of
// transports, by GpuExchange.

#include <vector>

#include "bench/communication.hpp"
#include "bench/halo.hpp"
#include "bench/queued.hpp"

namespace hostless::bench {

struct StreamPingPong {
  std::size_t bytes = 0;
  int steps = 0;
  QueuedTiming one_way;
};

/// Messages there and back between the GPUs of two ranks, the others wait; half of that time is one way. In
/// the end messages bring bytes of their own, each of which is looked at.
///
/// Collective; the same on every rank.
/// Errors  usage        as ping_pong; fewer GPUs than asked for; a transport that these ranks cannot have
///         environment  no GPU; a library that is absent; a message that brought something else
///         peer_lost    a rank fell silent past its deadline
std::vector<StreamPingPong> stream_ping_pong(Transport& transport, PingPong const& what, StreamWay const& way,
                                             Protocol const& protocol);

/// The exchange of a plan, whose messages answer each other. Every byte of every ghost is compared in the
/// end. Errors as stream_ping_pong, and those of `halo`.
std::vector<QueuedTiming> stream_halo(Transport& transport, Halo const& what, StreamWay const& way,
                                      Protocol const& protocol);

/// The parts of a sum of some doubles, brought from every GPU to every other one: what an ordered sum waits
/// for. In the end the parts are added in the order of ranks, and compared. Errors as stream_ping_pong.
std::vector<QueuedTiming> stream_parts_of_sums(Transport& transport, int values, StreamWay const& way,
                                               Protocol const& protocol);

}  // namespace hostless::bench
