#include "hostless/plan/summary.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "hostless/base/error.hpp"
#include "hostless/plan/routes.hpp"
#include "plan_cases.hpp"

namespace hostless {
namespace {

std::vector<ExchangePlan> plans_of(Route route, ReuseGuarantee reuse_guarantee = ReuseGuarantee::reduction) {
  return make_plans(route, testing::figure().patterns(), NodeMap::blocks(8, 4), {reuse_guarantee});
}

// Figure 2.3 by hand: L 1 item; G 2 items; N 3 items; R 2 + 1 + 1 items.
TEST(Summary, CountsTheFigureByHand) {
  PlanSummary const summary = summarise(plans_of(Route::three_step), 8);
  EXPECT_EQ(summary.total.sent.messages_inside, 5);
  EXPECT_EQ(summary.total.sent.items_inside, 7);
  EXPECT_EQ(summary.total.sent.messages_between, 1);
  EXPECT_EQ(summary.total.sent.items_between, 3);
  EXPECT_EQ(summary.total.received.items_between, 3);
  EXPECT_EQ(summary.rank[0].sent.items_between, 3);
  EXPECT_EQ(summary.rank[7].received.items_between, 3);
  EXPECT_EQ(summary.rank[7].sent.items_inside, 4);
  EXPECT_EQ(summary.most.sent.items_inside, 4);
  EXPECT_EQ(summary.most.sent.messages_inside, 3);
  EXPECT_EQ(summary.total.ghosts, 7);
  EXPECT_EQ(summary.total.owned, 32);
  EXPECT_EQ(summary.nodes, 2);
  PlanSummary const direct = summarise(plans_of(Route::direct), 8);
  EXPECT_EQ(direct.total.sent.messages_between, 5);
  EXPECT_EQ(direct.total.sent.items_between, 6);
  EXPECT_EQ(direct.total.items_moved, 0);
}

TEST(Summary, CreditsAreCountedApart) {
  PlanSummary const summary = summarise(plans_of(Route::direct, ReuseGuarantee::credit), 8);
  EXPECT_EQ(summary.total.sent.credits, 6);
  EXPECT_EQ(summary.total.sent.messages_inside + summary.total.sent.messages_between, 6);
  EXPECT_NE(table(summary).find("and 6 empty messages (credits), at most 2 from one rank"),
            std::string::npos);
}

TEST(Summary, TheTableHasALineARank) {
  std::string const text = table(summarise(plans_of(Route::two_step), 8));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3 + 8 + 2);
  EXPECT_EQ(text.find("route two_step, 8 ranks on 2 nodes, 3 stages, 8 bytes an item"), 0u);
  EXPECT_NE(text.find(" total "), std::string::npos);
  EXPECT_EQ(text.find("credits"), std::string::npos);
}

TEST(Summary, JsonHoldsTheSameNumbers) {
  auto const json = nlohmann::json::parse(to_json(summarise(plans_of(Route::three_step), 24)));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["route"], "three_step");
  EXPECT_EQ(json["ranks"], 8);
  EXPECT_EQ(json["nodes"], 2);
  EXPECT_EQ(json["total"]["sent"]["messages_between_nodes"], 1);
  EXPECT_EQ(json["total"]["sent"]["bytes_between_nodes"], 3 * 24);
  EXPECT_EQ(json["total"]["sent"]["bytes_inside_nodes"], 7 * 24);
  EXPECT_EQ(json["per_rank"].size(), 8u);
  EXPECT_EQ(json["per_rank"][7]["received"]["bytes_between_nodes"], 3 * 24);
  EXPECT_EQ(json["per_rank"][7]["node"], 1);
}

// Figure 2.3 by hand: with three steps only the roots of the two nodes, 0 and 7, meet.
TEST(Summary, PairsAddUpToTheTotals) {
  PlanSummary const summary = summarise(plans_of(Route::three_step, ReuseGuarantee::credit), 8);
  std::int64_t messages = 0, items = 0, between = 0;
  for (std::size_t k = 0; k < summary.pairs.size(); ++k) {
    PairTraffic const& pair = summary.pairs[k];
    EXPECT_GT(pair.items, 0);
    messages += pair.messages;
    items += pair.items;
    if ((pair.source < 4) != (pair.target < 4)) {
      ++between;
      EXPECT_EQ(pair.source, 0);
      EXPECT_EQ(pair.target, 7);
      EXPECT_EQ(pair.items, 3);
    }
    if (k == 0) continue;
    PairTraffic const& before = summary.pairs[k - 1];
    EXPECT_LT(std::make_pair(before.source, before.target), std::make_pair(pair.source, pair.target));
  }
  EXPECT_EQ(between, 1);
  EXPECT_EQ(messages, summary.total.sent.messages_inside + summary.total.sent.messages_between);
  EXPECT_EQ(items, summary.total.sent.items_inside + summary.total.sent.items_between);
  auto const json = nlohmann::json::parse(to_json(summary))["pairs"];
  ASSERT_EQ(json["source"].size(), summary.pairs.size());
  for (std::size_t k = 0; k < summary.pairs.size(); ++k) {
    EXPECT_EQ(json["source"][k], summary.pairs[k].source);
    EXPECT_EQ(json["target"][k], summary.pairs[k].target);
    EXPECT_EQ(json["messages"][k], summary.pairs[k].messages);
    EXPECT_EQ(json["bytes"][k], summary.pairs[k].items * 8);
  }
}

TEST(Summary, RefusesNothing) {
  EXPECT_THROW(summarise({}, 8), Error);
  EXPECT_THROW(summarise(plans_of(Route::direct), 0), Error);
}

}  // namespace
}  // namespace hostless
