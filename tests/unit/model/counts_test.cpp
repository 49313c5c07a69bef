#include "hostless/model/counts.hpp"

#include <gtest/gtest.h>

#include "hostless/base/error.hpp"
#include "plan_cases.hpp"

namespace hostless {
namespace {

void expect_equal(ExchangeCounts const& a, ExchangeCounts const& b, std::string const& which) {
  EXPECT_EQ(a.route, b.route);
  EXPECT_EQ(a.leaving, b.leaving) << which;
  EXPECT_EQ(a.ghosts, b.ghosts) << which;
  ASSERT_EQ(a.stages.size(), b.stages.size()) << which;
  for (std::size_t s = 0; s < a.stages.size(); ++s) {
    EXPECT_EQ(a.stages[s].after, b.stages[s].after) << which;
    EXPECT_EQ(a.stages[s].messages, b.stages[s].messages) << which << " stage " << s;
  }
}

// Figure 2.3 of Lockhart et al. 2022: P0 and P1 hold data for node 1, counted by hand.
TEST(Counts, FigureByHand) {
  auto const patterns = testing::figure().patterns();
  NodeMap const nodes = NodeMap::blocks(8, 4);
  ExchangeCounts const direct = count_exchange(Route::direct, patterns, nodes);
  ASSERT_EQ(direct.stages.size(), 1U);
  std::vector<CountedMessage> const pairs{{0, 4, 1}, {0, 5, 1}, {1, 4, 1}, {1, 6, 1}, {1, 7, 2}, {2, 3, 1}};
  EXPECT_EQ(direct.stages[0].messages, pairs);
  EXPECT_EQ(direct.leaving, (std::vector<std::int64_t>{1, 2, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(direct.ghosts, (std::vector<std::int64_t>{0, 0, 0, 1, 2, 1, 1, 2}));
  ExchangeCounts const two = count_exchange(Route::two_step, patterns, nodes);
  ASSERT_EQ(two.stages.size(), 3U);
  EXPECT_EQ(two.stages[1].messages, (std::vector<CountedMessage>{{0, 4, 1}, {1, 5, 2}}));
  EXPECT_EQ(two.stages[2].messages,
            (std::vector<CountedMessage>{{4, 5, 1}, {5, 4, 1}, {5, 6, 1}, {5, 7, 2}}));
}

TEST(Counts, ThoseOfARouteAreThoseOfItsPlans) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    int const ranks = 2 + static_cast<int>(seed) % 9;
    auto const patterns = testing::random_reads(ranks, seed).patterns();
    NodeMap const nodes = testing::random_nodes(ranks, seed);
    for (Route route : all_routes)
      for (PlanOptions const& options : {PlanOptions{}, testing::varied(route, nodes, seed, {})})
        expect_equal(count_exchange(route, patterns, nodes, {}, options),
                     count_exchange(make_plans(route, patterns, nodes, options)),
                     std::string(name(route)) + " of seed " + std::to_string(seed));
  }
}

TEST(Counts, CreditsAreMessagesOfNothing) {
  auto const patterns = testing::figure().patterns();
  NodeMap const nodes = NodeMap::blocks(8, 4);
  ExchangeCounts const counts =
      count_exchange(make_plans(Route::direct, patterns, nodes, {ReuseGuarantee::credit}));
  ASSERT_EQ(counts.stages.size(), 2U);
  EXPECT_EQ(counts.stages[1].after, std::vector<int>{0});
  ASSERT_EQ(counts.stages[0].messages.size(), 6U);
  for (CountedMessage const& credit : counts.stages[0].messages) EXPECT_EQ(credit.items, 0);
}

// Strips and cells give the same counts, message by message: of uneven boxes, nodes that cut through rows of
// boxes, axes that wrap, with and without corners.
TEST(Counts, StripsAreCells) {
  using enum GridBoundary;
  BoxPartition const cases[] = {{{{13, 11, 17}, {}}, {3, 2, 4}},
                                {{{9, 8, 10}, {periodic, dirichlet, periodic}}, {2, 2, 3}},
                                {{{12, 1, 30}, {}}, {2, 1, 5}}};
  for (BoxPartition const& boxes : cases)
    for (bool faces : {true, false})
      for (int per_node : {3, 4, 5}) {
        std::array<std::int64_t, 3> const depth{2, boxes.grid.extent[1] > 1 ? 1 : 0, 1};
        NodeMap const nodes = NodeMap::blocks(boxes.ranks(), per_node);
        auto const cells = box_patterns(boxes, depth, faces);
        CoarsePatterns const strips = box_strips(boxes, depth, faces);
        for (Route route : {Route::direct, Route::two_step, Route::three_step})
          expect_equal(count_exchange(route, strips.patterns, nodes, strips.weights),
                       count_exchange(route, cells, nodes), name(route));
      }
}

TEST(Counts, Refused) {
  auto const patterns = testing::figure().patterns();
  NodeMap const nodes = NodeMap::blocks(8, 4);
  EXPECT_THROW(count_exchange(Route::direct, patterns, NodeMap::blocks(7, 4)), Error);
  EXPECT_THROW(count_exchange(Route::direct, patterns, nodes, {{1, 1}}), Error);
  std::vector<std::vector<std::int64_t>> weights(8, std::vector<std::int64_t>(4, 1));
  for (Route route : {Route::split, Route::leader})
    EXPECT_THROW(count_exchange(route, patterns, nodes, weights), Error) << "they cut what travels together";
  EXPECT_THROW(count_exchange(Route::split, patterns, nodes, {}, {.message_cap = 0}), Error);
  weights[3][2] = 0;
  EXPECT_THROW(count_exchange(Route::direct, patterns, nodes, weights), Error);
  EXPECT_THROW(count_exchange(std::vector<ExchangePlan>{}), Error);
  auto plans = make_plans(Route::two_step, patterns, nodes);
  plans.pop_back();
  EXPECT_THROW(count_exchange(plans), Error);
  plans = make_plans(Route::two_step, patterns, nodes);
  plans[0].stages[1].after = {2};
  EXPECT_THROW(count_exchange(plans), Error);
  plans = make_plans(Route::two_step, patterns, nodes);
  std::swap(plans[3], plans[5]);
  EXPECT_THROW(count_exchange(plans), Error) << "out of order";
  plans = make_plans(Route::two_step, patterns, nodes);
  plans[5] = make_plans(Route::two_step, patterns, NodeMap::blocks(8, 2))[5];
  EXPECT_THROW(count_exchange(plans), Error) << "of another exchange";
}

}  // namespace
}  // namespace hostless
