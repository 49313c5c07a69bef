#pragma once

#include <vector>

#include "hostless/model/closed_forms.hpp"
#include "hostless/plan/exchange_plan.hpp"

namespace hostless {

/// The symbols of table 7 of an actual pattern, and `kept`: the share of the bytes of the node that injects
/// most that is left when each item leaves the node once for each other node.
///
/// patterns        [ranks] who needs what of whom; ranks are GPUs
/// bytes_per_item  of what is exchanged
/// Symbols are zero where nothing leaves a node. Local.
/// Errors  usage  patterns and nodes are not of the same number of ranks
ExchangeSymbols symbols_of(std::vector<Pattern> const& patterns, NodeMap const& nodes, double bytes_per_item);

}  // namespace hostless
