#pragma once

#include <cstdint>
#include <vector>

#include "exchange/peer_copies.hpp"

namespace hostless {

/// One item at one end of a message. Offsets are those of PeerCopy.
struct MessageItem {
  std::int32_t vector_offset = 0;
  std::int32_t staging = 0;  ///< 1: an index into this rank's staging memory
  bool operator==(MessageItem const&) const = default;
};

/// What goes to one rank, or comes from it: items [first, first + items) of the round.
struct MessagePart {
  std::int32_t rank = 0;  ///< may be this one
  std::int64_t first = 0, items = 0;
  std::int64_t there = 0;  ///< of what goes out: its first item among those that come to that rank
  bool operator==(MessagePart const&) const = default;
};

/// One rank's part of a round of copies as messages, at most one from each rank to each: `from` is packed,
/// parts travel, `to` is unpacked. Both ends list the items of a part in the same order.
struct MessageRound {
  std::vector<MessagePart> out, in;  ///< by rank, none empty
  std::vector<MessageItem> from, to;
  std::int64_t most_in = 0;  ///< items that come, of the rank to which most do
  /// What comes from a rank lies together, in this order, in the vector itself: nothing need be unpacked.
  bool in_place = false;
};

/// The copies of a plan for what carries messages and stores nothing. Collective over `group`.
/// Cost  O(items sent and received by a rank) time and memory, two exchanges and a maximum for each round
std::vector<MessageRound> message_rounds(PeerCopies const& copies, Group& group);

/// The own rows among them that other ranks read, or this one a second time, rising.
std::vector<std::int32_t> rows_sent(PeerCopies const& copies);

}  // namespace hostless
