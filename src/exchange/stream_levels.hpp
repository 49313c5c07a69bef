#pragma once

#include <vector>

#include "exchange/message_levels.hpp"
#include "transport/stream/stream_setup.hpp"

namespace hostless {

/// What a transport is told of levels of messages whose items are so many bytes. in_place: levels whose items
/// lie together in the receiving array may be received there.
std::vector<gpu::StreamLevel> stream_levels(std::vector<MessageLevel> const& levels, std::int64_t item_bytes,
                                            bool in_place);

/// The whole exchange as one level, for an actor that goes through the stages of a plan by itself (the host):
/// own items that it reads, and all ghosts, which it brings. Its parts name no other rank.
MessageLevel staged_level(PeerCopies const& copies, ExchangePlan const& plan);

}  // namespace hostless
