#pragma once

#include <vector>

#include "hostless/plan/routes.hpp"

namespace hostless {

/// A rank's plan, as make_plan has it, and behind it those of the ranks that it exchanges messages with,
/// whose messages know the ends on their own rank alone.
///
/// Local. Errors, cost  as make_plan
std::vector<ExchangePlan> plans_beside(Route route, std::vector<Pattern> const& patterns,
                                       NodeMap const& nodes, Rank rank, PlanOptions const& options);

}  // namespace hostless
