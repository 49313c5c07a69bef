#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hostless/model/counts.hpp"
#include "hostless/model/machine_model.hpp"

namespace hostless {

/// Where the items of an exchange lie, and how they leave.
enum class DataPath : std::uint8_t {
  host,    ///< in the processor's memory
  device,  ///< in a GPU's memory, sent from there
  staged   ///< in a GPU's memory, copied to the host, sent from there, and copied back
};
char const* name(DataPath path);
/// The ways that items in such memory have.
std::vector<DataPath> paths_of(MemoryKind memory);

/// Seconds of an exchange by what takes them.
struct PriceTerms {
  double copies = 0.0;               ///< between GPU and host
  std::array<double, 3> messages{};  ///< by MessageSpan: alone and behind each other
  double queue = 0.0;                ///< search for matching receives
  double injection = 0.0;            ///< what the network cards add to that
  double sum() const;
};

/// Messages of one span.
struct SpanTraffic {
  std::int64_t messages = 0;
  double bytes = 0.0;
};

/// What an exchange of all ranks costs on a machine.
struct ExchangePrice {
  double seconds = 0.0;                    ///< until the last rank has its ghosts
  PriceTerms terms;                        ///< along the critical path; their sum is `seconds`
  std::vector<Rank> path;                  ///< [steps] whose messages the critical path waits for
  Rank last = 0;                           ///< the rank that is ready last; of several the lowest
  std::vector<double> ready;               ///< [ranks] seconds until the rank has its ghosts
  std::array<SpanTraffic, 3> total, most;  ///< by MessageSpan; most: sent by any one rank, number by number
  double node_bytes = 0.0;                 ///< the most that a node sends to others
  std::vector<std::string> sources;        ///< of the values that were used, in words
  std::vector<std::string> notes;          ///< what the data do not say
};

/// Prices an exchange: plays it step by step.
///
/// steps      stages that can run at the same time are one step. A rank begins it when it has its own part of
///            the step before, with all of its messages at once.
/// a rank     the messages that it sends, and those that it receives, each take the largest (first -
///            following) of one of them and the sum of what they take behind others (price.hpp). Receives add
///            the queue search, (m - 1) / 2 times the cost of each message. For messages that are all alike
///            this is what `price` of a pattern says.
/// injection  bytes that a node (or socket) sends, and those that it receives, at R_N of their sizes, joined
///            with the rank's time as `price` of a pattern does.
/// ready      the latest of: its sends; its receives, which begin when it and all who send to it have begun;
///            the sends of all who send to it.
/// staged     before the first step a rank copies what others read of it to the host, after the last one its
///            ghosts to the GPU; one process copies.
///
/// machine     its costs; ranks of a node fill its sockets one after the other (cores, or GPUs unless `path`
///             is host), whatever the node map says of sockets
/// item_bytes  of an item
/// Packing and unpacking cost nothing here: machine files have no data of them. Nor is work beside messages.
/// Local, deterministic. Cost  O(messages + ranks)
/// Errors  usage      item_bytes below 0 or not finite
///         bad_input  the machine has no data of such messages or copies
ExchangePrice price(MachineModel const& machine, ExchangeCounts const& counts, DataPath path,
                    double item_bytes);

/// One way of an exchange, and its price where the machine has the data.
struct PricedWay {
  Route route = Route::direct;
  DataPath path = DataPath::host;
  std::optional<ExchangePrice> price;
  std::string problem;  ///< why there is no price
};

/// Every exchange by every path that items in such memory have, in that order.
/// Errors  usage  as price
std::vector<PricedWay> price_ways(MachineModel const& machine, std::vector<ExchangeCounts> const& counts,
                                  MemoryKind memory, double item_bytes);

/// The position of the cheapest way. Of those within 2 % of it, which prices do not tell apart, that with the
/// fewest messages between nodes, then the cheapest, then the first: what messages do to each other on their
/// links is not priced. Between three emulated machines routes of one price took up to 1.5 times as long where
/// they had more messages (bench/model/emulated_routes.py).
/// Errors  bad_input  none has a price: what the first one says
std::size_t cheapest(std::vector<PricedWay> const& ways);

}  // namespace hostless
