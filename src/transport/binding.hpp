#pragma once

#include <cstddef>
#include <vector>

#include "hostless/transport/transport.hpp"

namespace hostless {

/// Most doubles that one gather carries on any transport: pipelined methods need 3, ordered sums up to 4.
constexpr int most_gather_width = 40;

/// Checks what every transport promises of `bind`: ranks exist, no id twice between the same two ranks, both
/// sides of every message name the same id and size, one gather width everywhere. Collective. Errors  usage
/// on all ranks, whichever rank is wrong
void check_binding(Group& group, Binding const& binding);

/// Numbers the messages between this rank and each peer from `first` on in the order of their ids: the same
/// numbers on both sides, however large the ids are.
std::vector<int> numbers_by_peer(std::vector<Outgoing> const& out, int first);
std::vector<int> numbers_by_peer(std::vector<Incoming> const& in, int first);

/// Checks what every endpoint promises of `gather`: one at a time, no wider than bound.
void check_sum(bool under_way, std::size_t width, int bound);
/// The error of a message that is started before its last epoch ended.
[[noreturn]] void refuse_restart(int index, char const* before);

}  // namespace hostless
