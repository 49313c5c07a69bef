#include "hostless/plan/exchange_plan.hpp"

#include <gtest/gtest.h>

#include "hostless/plan/routes.hpp"
#include "plan_cases.hpp"

namespace hostless {
namespace {

// Rank 1 reads one item of rank 0, one of its own and two of rank 2; rank 0 nothing of anybody.
TEST(VectorOffsets, FollowTheRisingOwners) {
  auto const patterns =
      testing::Reads({3, 2, 4}).add(0, 2, {1, 2}).add(1, 0, {1, 2}).add(2, 1, {1}).add(2, 3, {1}).patterns();
  for (Route route : all_routes) {
    auto const plans = make_plans(route, patterns, NodeMap::blocks(3, 2));
    std::vector<std::vector<std::int64_t>> vector_offsets;
    for (ExchangePlan const& plan : plans) {
      vector_offsets.emplace_back();
      for (std::int64_t item = 0; item < plan.owned + plan.ghosts; ++item)
        vector_offsets.back().push_back(plan.vector_offset(item));
    }
    EXPECT_EQ(vector_offsets[0], (std::vector<std::int64_t>{0, 1, 2}));
    EXPECT_EQ(vector_offsets[1], (std::vector<std::int64_t>{0, 1, -1, 2, 3, 4}));
    EXPECT_EQ(vector_offsets[2], (std::vector<std::int64_t>{0, 1, 2, 3, -2, -1}));
    EXPECT_EQ(plans[1].ghosts_below, 1);
    EXPECT_EQ(plans[2].ghosts_below, 2);
  }
}

}  // namespace
}  // namespace hostless
