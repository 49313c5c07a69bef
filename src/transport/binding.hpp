#pragma once

#include <cstddef>
#include <vector>

#include "hostless/transport/transport.hpp"

namespace hostless {

/// Most doubles that one gather carries on any transport: pipelined methods need 3, ordered sums up to 4.
constexpr int most_gather_width = 8;

/// Checks what every transport promises of `bind`: ranks exist, no id twice between the same two ranks, both
/// sides of every message name the same id and size, one gather width everywhere. Collective. Errors  usage
/// on all ranks, whichever rank is wrong
void check_binding(Group& group, Binding const& binding);

}  // namespace hostless
