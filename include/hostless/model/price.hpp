#pragma once

#include <string>
#include <vector>

#include "hostless/model/machine_model.hpp"

namespace hostless {

/// What 90 of 100 prices of messages were off at most where they were compared (docs/machine-files.md): the band of
/// every prediction.
constexpr double messages_off = 0.26;

/// Messages that begin at the same time and are all alike.
struct MessagePattern {
  MessageSpan span = MessageSpan::off_node;
  MemoryKind memory = MemoryKind::host;
  double bytes = 0.0;    ///< of one message
  int messages = 1;      ///< that each active rank sends, all to one other rank
  int active_ranks = 1;  ///< of a node, each with a partner of its own; they fill one socket after the other
};

/// What a pattern costs, and of which parts that is made.
struct MessagePrice {
  double seconds = 0.0;    ///< from the first start until the last message of all ranks has arrived
  double first = 0.0;      ///< of one message alone
  double following = 0.0;  ///< of what a rank sends behind it
  double queue = 0.0;      ///< of the search for matching receives
  double injection = 0.0;  ///< that the network cards take for the bytes of all ranks; 0 on a node
  Protocol protocol = Protocol::eager;
  Transfer transfer = Transfer::buffered;
  bool injection_bound = false;      ///< the cards, not the ranks, need longer
  std::vector<std::string> sources;  ///< of the values that were used, in words
  std::vector<std::string> notes;  ///< what the data do not say, and where a smaller message is priced higher
};

/// Prices a pattern.
///
/// ranks      first + (messages - 1) x following + queue_search x messages (messages - 1) / 2. `following` is
///            what was measured; where nothing was, it follows from one message alone, by its transfer:
///            inlined, half of the time on a socket (an overhead on each side); buffered, half of its time;
///            direct, its time less the flight (the smallest message's time less that on a socket).
/// injection  bytes x messages x ranks of the node (or of a socket) / R_N; joined with the ranks' time T as
///            (T^p + I^p - I_1^p)^(1/p), I_1 of one rank alone, whose time contains it.
/// Local, a microsecond. Source: max-rate model (Gropp, Olson and Samfass 2016), LogGP's gap, queue search
/// (Bienz, Gropp and Olson 2018).
/// Errors  usage      messages or active_ranks < 1, bytes negative or not finite
///         bad_input  the machine has no data for such messages
MessagePrice price(MachineModel const& machine, MessagePattern const& pattern);

/// As above, of tables that belong to no file; `node` says which ranks share a socket.
MessagePrice price(CostTables const& tables, NodeShape const& node, MessagePattern const& pattern);

/// What to do where data are missing: "name another machine", and how to take another one's messages where these tables
/// have none.
std::string name_another_machine(CostTables const& tables);

}  // namespace hostless
