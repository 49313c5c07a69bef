#pragma once

#include <cstdint>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"
#include "hostless/plan/routes.hpp"

namespace hostless {

/// The other direction of an exchange: what ranks hold as ghosts goes to the owners. Each ghost is an item of
/// its holder that its owner reads.
///
/// patterns  [ranks] of the exchange that fills the ghosts
/// Returns   [ranks] patterns with as many owned items as the rank has ghosts, in the order in which they
/// lie.
///           What arrives at a rank are contributions, by (source rank, ghost of that rank)
/// Local. Cost  O(n log n) time, n = (item, receiver) pairs of all ranks
/// Errors  usage  patterns that are none
std::vector<Pattern> transposed(std::vector<Pattern> const& patterns);

/// One rank's part of it.
struct ReversePlan {
  ExchangePlan exchange;          ///< of the ghosts, to an array of contributions; a plan like any other
  std::int64_t owned = 0;         ///< items of this rank's that contributions are added to
  std::vector<std::int32_t> sum;  ///< [exchange.ghosts] the owned item that each contribution is added to
};

/// The plan of that direction, by any route.
///
/// patterns, nodes, rank  as for make_plan of the exchange that fills the ghosts
/// options                `apart` is set: contributions are an array of their own
/// Errors  usage  as make_plan
/// Cost    as make_plan
ReversePlan make_reverse_plan(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes,
                              Rank rank, PlanOptions options = {ReuseGuarantee::answer, Space::host, true});

}  // namespace hostless
