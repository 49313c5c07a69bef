#pragma once

#include <cstdint>
#include <vector>

#include "hostless/plan/routes.hpp"

namespace hostless {

/// The route where nobody names one and it is known what moves: direct, unless two_step, leader or three_step need less than 3/4 of
/// what it needs, by the bytes of the fullest node and the messages of the busiest rank at every stage.
///
/// bytes    [ranks][owned] of each item
/// options  that the plan will have
/// Local, equal for equal arguments. Errors  as make_plan
/// Cost     that of making the messages of four routes
/// Source   docs/decisions/0034-routes-by-counts.md
Route automatic_route(std::vector<Pattern> const& patterns, NodeMap const& nodes,
                      std::vector<std::vector<std::int64_t>> const& bytes, PlanOptions const& options);

}  // namespace hostless
