#pragma once

#include "hostless/base/deadline.hpp"
#include "hostless/plan/routes.hpp"
#include "plan_cases.hpp"

namespace hostless::testing {

constexpr WaitLimits patient{60, 60};

/// Of ranks with an item each, which nobody else reads.
inline ExchangePlan alone(int ranks, Rank rank) {
  return make_plan(Route::direct,
                   Reads(std::vector<std::int64_t>(static_cast<std::size_t>(ranks), 1)).patterns(),
                   NodeMap::blocks(ranks, ranks), rank);
}

}  // namespace hostless::testing
