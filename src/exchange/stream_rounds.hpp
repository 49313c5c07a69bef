#pragma once

#include <vector>

#include "exchange/message_rounds.hpp"
#include "transport/stream/stream_setup.hpp"

namespace hostless {

/// What a transport is told of rounds of messages whose items are so many bytes. in_place: rounds whose items
/// lie together in the receiving array may be received there.
std::vector<gpu::StreamRound> stream_rounds(std::vector<MessageRound> const& rounds, std::int64_t item_bytes,
                                            bool in_place);

/// The whole exchange as one round, for an actor that goes through the stages of a plan by itself (the host):
/// own items that it reads, and all ghosts but gaps, which it brings. Its parts name no other rank.
MessageRound staged_round(PeerCopies const& copies, ExchangePlan const& plan);

}  // namespace hostless
