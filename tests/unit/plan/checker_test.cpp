#include "hostless/plan/checker.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "hostless/plan/routes.hpp"
#include "plan_cases.hpp"

namespace hostless {
namespace {

/// A proven set of plans, to be broken in one place.
struct Broken : ::testing::Test {
  std::vector<Pattern> const patterns = testing::figure().patterns();
  NodeMap const nodes = NodeMap::blocks(8, 4);
  std::vector<ExchangePlan> plans = make_plans(Route::three_step, patterns, nodes);

  void SetUp() override { ASSERT_EQ(check(plans, patterns), std::vector<std::string>{}); }
  void use(Route route, ReuseGuarantee reuse_guarantee = ReuseGuarantee::reduction) {
    plans = make_plans(route, patterns, nodes, {reuse_guarantee});
    ASSERT_EQ(check(plans, patterns), std::vector<std::string>{});
  }
  /// Every complaint is of `rule`, and one says `part`.
  void expect_only(std::string const& rule, std::string const& part) {
    auto const found = check(plans, patterns);
    bool said = false;
    for (std::string const& text : found) {
      EXPECT_EQ(text.substr(0, rule.size()), rule) << text;
      said = said || text.find(part) != std::string::npos;
    }
    EXPECT_TRUE(said) << part << " is not in\n" << ::testing::PrintToString(found);
  }
  bool complains(std::string const& part) {
    auto const found = check(plans, patterns);
    return std::any_of(found.begin(), found.end(),
                       [&](std::string const& text) { return text.find(part) != std::string::npos; });
  }
  /// Applies a change to both sides of the message from source to target in a stage.
  template <class Change>
  void change(Rank source, Rank target, std::size_t stage, Change&& how) {
    for (Message& m : plans[static_cast<std::size_t>(source)].stages[stage].out)
      if (m.target == target) how(m);
    for (Message& m : plans[static_cast<std::size_t>(target)].stages[stage].in)
      if (m.source == source) how(m);
  }
};

TEST_F(Broken, Rule1AGhostIsNeverWritten) {
  plans[7].stages[2].unpack.clear();
  expect_only("check 1: rank 7", "ghost 0 (item 2 of rank 1) is never written");
}

TEST_F(Broken, Rule1AGhostIsWrittenTwice) {
  Stage& last = plans[7].stages[2];
  last.unpack.push_back(last.unpack[0]);
  expect_only("check 1: rank 7", "ghost 0 is written by stage 2 and again by stage 2");
}

TEST_F(Broken, Rule2SidesDiffer) {
  plans[7].stages[2].in[0].trigger = 9;
  expect_only("check 2: rank 0", "trigger 2 where it is sent and 9 where it is received");
}

TEST_F(Broken, Rule2EveryFieldIsCompared) {
  use(Route::direct);
  std::vector<ExchangePlan> const good = plans;
  // Message 3 goes from rank 1 to rank 6. The fields that place it on the receiving side are spoiled on the
  // sending one.
  auto spoil = [&](char const* field, auto&& how) {
    plans = good;
    for (Message& m : plans[1].stages[0].out)
      if (m.target == 6) how(m);
    expect_only("check 2: rank 1", std::string("message 3 has ") + field);
  };
  spoil("to ", [](Message& m) { m.to = 5; });
  spoil("to_first", [](Message& m) { ++m.to_first; });
  spoil("from_first", [](Message& m) { --m.from_first; });
  spoil("items", [](Message& m) { m.items = 2; });
  spoil("free", [](Message& m) { m.reuse_guarantee = ReuseGuarantee::promise; });
  spoil("answer", [](Message& m) { m.answer = 2; });
  spoil("target", [](Message& m) { m.target = 7; });
  plans = good;
  for (Message& m : plans[6].stages[0].in) m.source = 2;
  expect_only("check 2: rank 1", "message 3 has source 1 where it is sent and 2 where it is received");
  plans = good;
  for (Message& m : plans[6].stages[0].in) m.from = 1;
  expect_only("check 2: rank 1", "message 3 has from 0");
}

TEST_F(Broken, Rule2OneSideIsMissing) {
  plans[0].stages[2].out.clear();
  expect_only("check 2: rank 7", "is received but sent by nobody");
  use(Route::three_step);
  plans[7].stages[2].in.clear();
  expect_only("check 2: rank 0", "is sent but received by nobody");
}

TEST_F(Broken, Rule2AnIdTwice) {
  use(Route::direct);
  plans[0].stages[0].out[1].id = plans[0].stages[0].out[0].id;
  EXPECT_TRUE(complains("message 0 is sent twice"));
}

TEST_F(Broken, Rule3StagesOfOneRankInACircle) {
  plans[3].stages[1].after.push_back(3);
  expect_only("check 3: rank 3", "stage 1 can never complete");
}

TEST_F(Broken, Rule3RanksInACircle) {
  // 0 sends to 1 only after hearing from it, and the other way round.
  std::vector<Pattern> const both = testing::Reads({1, 1}).add(0, 0, {1}).add(1, 0, {0}).patterns();
  plans = make_plans(Route::direct, both, NodeMap::blocks(2, 2));
  testing::receive_before_sending(plans);
  auto const found = check(plans, both);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0], "check 3: rank 0: stage 0 can never complete: stages wait for each other in a circle");
}

TEST_F(Broken, Rule4GhostsHoldTheWrongItem) {
  use(Route::direct);
  change(1, 6, 0, [](Message& m) { m.from_first = 3; });
  expect_only("check 4: rank 6", "ghost 0 ends with item 3 of rank 1, must be item 2 of rank 1");
}

TEST_F(Broken, Rule5ACopyEntersANodeAgain) {
  use(Route::direct);
  for (ExchangePlan& plan : plans) plan.route = Route::two_step;
  expect_only("check 5: rank ", "message 1 brings item 1 of rank 0 to node 1 again");
}

TEST_F(Broken, Rule5SomethingEntersThatNobodyReads) {
  // Rank 0's own item and the one in front of it travel; only one is unpacked.
  std::vector<Pattern> const one = testing::Reads({2, 1}).add(0, 1, {1}).patterns();
  plans = make_plans(Route::three_step, one, NodeMap::blocks(2, 1));
  plans[1].buffers.push_back({1, 1, Space::host, 2, 2});
  change(0, 1, 2, [](Message& m) { m.from_first = 0, m.items = 2, m.to = 1, m.to_first = 0; });
  Pieces from, to;
  from.buffer = 1, from.first = 1, from.count = 1;
  to.first = 1, to.count = 1;
  plans[1].stages[2].unpack.push_back({1, from, to});
  auto const found = check(plans, one);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0], "check 5: rank 0: message 0 brings item 0 of rank 0 to node 1, where nobody reads it");
}

TEST_F(Broken, Rule6AReductionNeedsTwoEpochs) {
  plans[7].buffers[1].epochs = 1;
  expect_only("check 6: rank 0", "relies on a reduction, but buffer 1 of rank 7 has one epoch");
}

TEST_F(Broken, Rule6ACreditMustComeFirst) {
  use(Route::three_step, ReuseGuarantee::credit);
  for (ExchangePlan& plan : plans) plan.stages[1].after.clear();
  expect_only("check 6: rank 2", "which may arrive after the send");
}

TEST_F(Broken, Rule6ACreditMustExistAndBeEmptyAndComeBack) {
  use(Route::direct, ReuseGuarantee::credit);
  auto const good = plans;
  change(2, 3, 1, [](Message& m) { m.answer = 99; });
  EXPECT_TRUE(complains("check 6: rank 2: message 5 relies on message 99, which does not exist"));
  plans = good;
  change(2, 3, 1, [](Message& m) { m.answer = 6; });
  EXPECT_TRUE(
      complains("check 6: rank 2: message 5 relies on message 6, which is not of the opposite direction"));
  plans = good;
  change(3, 2, 0, [](Message& m) { m.items = 1; });
  EXPECT_TRUE(complains("check 6: rank 2: message 5 relies on the credit 11, which carries 1 item"));
}

TEST_F(Broken, Rule6AnAnswerOfTheSameStageNeedsTwoEpochs) {
  std::vector<Pattern> const both = testing::Reads({1, 1}).add(0, 0, {1}).add(1, 0, {0}).patterns();
  plans = make_plans(Route::direct, both, NodeMap::blocks(2, 2));
  for (auto const& [source, target, answer] : {std::tuple{0, 1, 1}, std::tuple{1, 0, 0}})
    change(source, target, 0,
           [number = answer](Message& m) { m.reuse_guarantee = ReuseGuarantee::answer, m.answer = number; });
  EXPECT_EQ(check(plans, both), std::vector<std::string>{});
  for (ExchangePlan& plan : plans) plan.buffers[0].epochs = 1;
  EXPECT_EQ(check(plans, both).size(), 2u);
}

TEST_F(Broken, Rule6APromiseIsTheCallers) {
  plans[7].buffers[1].epochs = 1;
  change(0, 7, 2, [](Message& m) { m.reuse_guarantee = ReuseGuarantee::promise; });
  EXPECT_EQ(check(plans, patterns), std::vector<std::string>{});
}

TEST_F(Broken, Rule7AReadThatNothingOrders) {
  plans[7].stages[3].after.clear();
  EXPECT_TRUE(complains("check 7: rank 7: stage 3 reads item "));
  // Listed in front of the stage that it no longer waits for: in whatever order they run, it is found.
  std::swap(plans[7].stages[2], plans[7].stages[3]);
  EXPECT_TRUE(complains("check 7: rank 7: stage 3 reads item "));
}

TEST_F(Broken, Rule7AReadOfWhatIsNeverWritten) {
  plans[0].stages[2].pack.pop_back();
  EXPECT_TRUE(complains("check 7: rank 0: stage 2 reads item 1 of buffer 2 before anything has written it"));
  EXPECT_TRUE(complains("check 4: rank 4: ghost 1 ends with nothing, must be item 2 of rank 1"));
}

TEST_F(Broken, Rule7AMoveReadsWhatTheSameStageReceives) {
  Stage& network = plans[7].stages[2];
  network.pack.swap(network.unpack);
  EXPECT_TRUE(complains("check 7: rank 7: stage 2 reads item "));
}

TEST_F(Broken, Rule7StagingIsWrittenTwice) {
  Stage& network = plans[0].stages[2];
  network.pack.push_back(network.pack[0]);
  expect_only("check 7: rank 0", "item 0 of buffer 2 is written by stage 2 and again by stage 2");
}

TEST_F(Broken, Rule7OwnedItemsAreOverwritten) {
  Pieces from, to;
  from.first = 0, from.count = 1;
  to.first = 2, to.count = 1;
  plans[5].stages[0].pack.push_back({5, from, to});
  expect_only("check 7: rank 5", "stage 0 overwrites owned item 2");
}

TEST_F(Broken, ManyComplaintsAreCounted) {
  std::vector<Pattern> const wide = testing::Reads({9, 1})
                                        .add(0, 0, {1})
                                        .add(0, 1, {1})
                                        .add(0, 2, {1})
                                        .add(0, 3, {1})
                                        .add(0, 4, {1})
                                        .patterns();
  plans = make_plans(Route::direct, wide, NodeMap::blocks(2, 1));
  plans[0].stages[0].out.clear();
  plans[1].stages[0].in.clear();
  auto const found = check(plans, wide);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found.back(), "check 1: rank 1: and 2 more");
}

TEST_F(Broken, SetsThatDoNotBelongTogether) {
  plans[2].fingerprint ^= 1;
  expect_only("shape", "plans[2].fingerprint");
  use(Route::three_step);
  std::swap(plans[0], plans[1]);
  expect_only("shape", "plans[0].rank: 1 is not 0");
  use(Route::three_step);
  plans.pop_back();
  expect_only("shape", "7 plans and 8 patterns");
  plans = make_plans(Route::three_step, testing::Reads({4, 4, 4, 4, 4, 4, 4, 4}).patterns(), nodes);
  expect_only("shape", "plans[3].ghosts: 0, the patterns ask for 1");
  plans = make_plans(Route::three_step, testing::Reads({5, 4, 4, 4, 4, 4, 4, 4}).patterns(), nodes);
  expect_only("shape", "plans[0].owned: 5");
  use(Route::three_step);
  plans[7].ghosts_below = 1;
  expect_only("shape", "plans[7].ghosts_below: 1, the patterns have 2 of lower ranks");
}

// A file may claim any size; what is simulated follows from the patterns.
TEST_F(Broken, VolumesBeyondReasonAreRefused) {
  plans[4].buffers.push_back({static_cast<BufferId>(plans[4].buffers.size()), 4, Space::host, 2000000000, 2});
  expect_only("shape", "plans[4]: buffers, moves and messages of 20000");
}

}  // namespace
}  // namespace hostless
