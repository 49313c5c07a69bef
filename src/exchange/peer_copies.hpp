#pragma once

#include <cstdint>
#include <vector>

#include "exchange/peer_copy.hpp"
#include "hostless/plan/exchange_plan.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// A plan for ranks that store into each other's memory: no messages, no packing, only items and where they
/// go.
///
/// All copies of one round can be executed at once, in any order; a barrier over all ranks follows every
/// round. An item that a rank passes on arrives in its staging memory, once; if it is a ghost of that rank
/// too, the rank copies it from there a round later. So a node border is crossed as often as the plan says.
///
/// Why a target may be overwritten by the next exchange: staging memory, because the barrier after the last
/// round lies behind every read of it. Ghosts, because the caller puts a barrier over all ranks, or a sum
/// over all ranks, between its last read of them and round 0 of the next exchange. One epoch of each is
/// enough.
struct PeerCopies {
  std::int64_t staging = 0;  ///< items of this rank's staging memory
  /// Of this rank; equally many on every rank and at least one, a round of a rank may be empty. Each is
  /// sorted by (from_staging, from, target, to).
  std::vector<std::vector<PeerCopy>> rounds;
  std::vector<std::int32_t> gaps;  ///< this rank's ghosts that nothing writes, rising
};

/// The copies that do what `plan` does, as early as its stages allow: copies of owned items that wait for
/// nothing have round 0, those that pass items on follow the round that brought the last item they wait for.
/// Direct plans have one round and no staging memory.
///
/// Collective over `group`; rank r passes plan r.
/// ghosts_apart  plans whose ghosts are an array of their own are taken too: PeerCopy::to is then its index,
///               and ghosts that nothing writes are gaps, which stay as they are
/// Errors  usage  on every rank: the plans are not of this group or not of one set; a message is missing or
///                different on one side; stages wait for each other in a circle; an item is read before it is
///                written, or written twice; a ghost around owned items is never written; more than 32767
///                ranks
/// Cost    O(items moved, sent and received by a rank) time and memory, rounds + 3 exchanges
PeerCopies peer_copies(ExchangePlan const& plan, Group& group, bool ghosts_apart = false);

}  // namespace hostless
