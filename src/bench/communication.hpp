#pragma once
// What ranks of the host pay for messages and sums alone: two of them that answer each other, the exchange of
// a plan with nothing computed (Ismayilov et al. 2023, figures 1b and 6), sums over all ranks.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/timing.hpp"
#include "hostless/exchange/exchange.hpp"
#include "hostless/plan/exchange_plan.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless::bench {

struct PingPong {
  int first = 0, second = 1;       ///< ranks; the others wait for them
  std::vector<std::size_t> bytes;  ///< of the messages to time, one after the other; each at least 1
};
struct PingPongTiming {
  std::size_t bytes = 0;
  int steps = 0;  ///< there and back, of a repeat: fewer than asked for where messages are long
  Timing one_way;
  double bytes_per_s() const { return static_cast<double>(bytes) / one_way.best(); }
};

/// Of so many steps, those that are made with messages of so many bytes.
int steps_of(std::size_t bytes, int asked);

/// Messages there and back between two ranks through the verbs of an Endpoint; half of that time is one way.
/// Every answer repeats the mark at both ends of the message that it answers, which is compared.
///
/// Collective; the same on every rank.
/// Errors  usage        ranks that are not there, or one and the same; no bytes
///         environment  a message brought something else than was sent
///         peer_lost    one of the two fell silent past its deadline
/// Cost    each repeat carries `steps` messages each way, of long ones 64 MiB, but at least 8
std::vector<PingPongTiming> ping_pong(Transport& transport, PingPong const& what, Protocol const& protocol);

struct HaloTiming {
  Timing step;       ///< an exchange and the sum that lets the next one begin
  Timing sum_alone;  ///< that sum without the exchange
};

/// The exchange of a plan and an ordered sum of one value over ranks, with nothing computed.
///
/// Collective; the same on every rank. In the end some exchanges bring a value of their own each, and every
/// ghost is looked at.
/// Errors  usage        as Exchange
///         environment  a ghost or a sum is not what it must be
///         peer_lost    a rank fell silent past its deadline
HaloTiming halo(Transport& transport, ExchangePlan const& plan, Protocol const& protocol);

/// Sums of `values` doubles over all ranks, at most Exchange::widest_sum; each sum is compared.
///
/// Collective; the same on every rank.
/// Errors  usage        too many values, or Reduction::fast where the transport has no library all-reduce
///         environment  a sum is not what it must be
///         peer_lost    a rank fell silent past its deadline
Timing sum(Transport& transport, int values, Reduction reduction, Protocol const& protocol);

}  // namespace hostless::bench
