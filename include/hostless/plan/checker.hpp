#pragma once

#include <string>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"

namespace hostless {

/// Proves that the plans of all ranks carry out the exchange that `patterns` describe, by simulating one
/// exchange of all ranks in which every item's value is its global identity. Empty: proven. Else one
/// complaint for each defect, starting with the number of the violated rule (at most a handful for each rule
/// and rank):
///
/// check 1  every ghost is written exactly once an exchange
/// check 2  the two sides of every message agree field by field
/// check 3  the stages of all ranks can run: no circle of waiting
/// check 4  every ghost ends with its own item
/// check 5  on node-aware routes an item enters a node once, and only where somebody reads it
/// check 6  every reason to overwrite a target holds: `reduction` needs two epochs; `answer` and `credit`
/// need a message
///          of the opposite direction, received before the send in the same exchange, or two epochs; `credit`
///          an empty one. `promise` is the caller's and not provable here.
/// check 7  nothing is read unless a stage in front, or an earlier part of the same stage (pack, out, in,
/// unpack), has
///          written it; nothing is written twice in an exchange, owned items never
///
/// `shape` complaints (sizes, ranges, ids, other ranks' plans missing, a foreign fingerprint, volumes that no
/// reasonable plan has) end the proof early, as does a violated rule 3.
/// Receives are taken to be open from the start of an exchange on; exchanges of one rank follow each other.
/// Safe for any data, whatever it holds.
/// Cost  O(items moved on all ranks) time and memory, bounded by the size of the patterns
std::vector<std::string> check(std::vector<ExchangePlan> const& plans, std::vector<Pattern> const& patterns);

}  // namespace hostless
