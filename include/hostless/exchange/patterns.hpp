#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// Who reads what, from the global numbers of items: what `make_plan` and `make_reverse_plan` are given.
///
/// owned   numbers of the items that this rank owns; item i of the plan is owned[i]
/// ghosts  numbers of the items that it reads; ghost g of the plan is ghosts[g]. Own items may be among them
/// Returns  [ranks] on every rank. The plan must be made with PlanOptions::apart, because ghosts keep the
///          caller's order
/// Collective. Numbers need not be dense; nothing is known of owners beforehand, each rank looks after a part
/// of all numbers.
/// Errors  usage  on all ranks: a negative number, an item that two ranks own or one owns twice, a ghost that
///                nobody owns or that is there twice, more than 2^31 - 1 items on a rank
/// Cost    O(n log n) time for n = the rank's own items, ghosts and readers; 4 exchanges, and the patterns of
///         all ranks on all ranks
std::vector<Pattern> patterns_of_ghosts(Group& group, std::span<std::int64_t const> owned,
                                        std::span<std::int64_t const> ghosts);

/// The same from lists, as neighbourhood collectives have them: value k of send[r] goes to place k of what
/// rank r has as receive[this rank].
///
/// owned    items of this rank
/// send     [ranks] owned items that go to each rank, in any order, none twice to one rank; the own rank too
/// receive  [ranks] ghosts that those of each rank become; together every number below their count once
/// Returns  as above
/// Collective.
/// Errors  usage  on all ranks: lists of different lengths at both ends (both ranks are named), an item or a
///                ghost out of range or twice, not one list a rank
std::vector<Pattern> patterns_of_lists(Group& group, std::int64_t owned,
                                       std::vector<std::vector<std::int32_t>> const& send,
                                       std::vector<std::vector<std::int32_t>> const& receive);

}  // namespace hostless
