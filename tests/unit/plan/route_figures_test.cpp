// Routes split and leader, and three_step by socket, in cases that can be followed by hand: what algorithm 1
// of Lockhart et al. 2022 and figures 2 to 6 of Temuçin et al. 2024 say.
#include <gtest/gtest.h>

#include "hostless/base/error.hpp"
#include "hostless/plan/checker.hpp"
#include "plan_cases.hpp"

namespace hostless {
namespace {

using testing::Reads;
using Table = std::vector<std::vector<std::int64_t>>;

/// source, target, items of the messages of a stage, all ranks, in the order in which each rank sends.
Table sent_in(std::vector<ExchangePlan> const& plans, std::size_t stage) {
  Table all;
  for (ExchangePlan const& plan : plans)
    for (Message const& m : plan.stages.at(stage).out) all.push_back({m.source, m.target, m.items});
  return all;
}

std::vector<ExchangePlan> proven(Route route, Reads const& reads, NodeMap const& nodes,
                                 PlanOptions const& options = {}) {
  auto plans = make_plans(route, reads.patterns(), nodes, options);
  EXPECT_EQ(check(plans, reads.patterns()), std::vector<std::string>{});
  return plans;
}

PlanOptions capped(std::int64_t items) {
  PlanOptions options;
  options.message_cap = items;
  return options;
}

/// Two nodes of four ranks; eight items of node 0 go to rank 4, one of them to rank 7 as well.
Reads eight_items() {
  Reads reads({2, 1, 4, 1, 0, 0, 0, 0});
  for (Rank s = 0; s < 4; ++s)
    for (std::int32_t i = 0; i < reads.owned[testing::at(s)]; ++i) reads.add(s, i, {4});
  return reads.add(2, 3, {7});
}

// As figure 2.7, with its cap of three: pieces of 3, 3 and 2, the first ones sent by the last rank.
TEST(Split, PiecesAreSentFromTheLastRankDownAndReceivedFromTheFirstOn) {
  auto const plans = proven(Route::split, eight_items(), NodeMap::blocks(8, 4), capped(3));
  ASSERT_EQ(plans[0].stages.size(), 4u);
  EXPECT_EQ(sent_in(plans, 0), Table{});
  EXPECT_EQ(sent_in(plans, 1), (Table{{0, 3, 2}, {1, 3, 1}, {2, 1, 1}, {3, 1, 1}}));
  EXPECT_EQ(sent_in(plans, 2), (Table{{1, 6, 2}, {2, 5, 3}, {3, 4, 3}}));
  EXPECT_EQ(sent_in(plans, 3), (Table{{5, 4, 3}, {6, 7, 1}, {6, 4, 2}}));
  EXPECT_EQ(plans[0].stages[2].after, std::vector<StageId>{1});
  EXPECT_EQ(plans[0].stages[3].after, std::vector<StageId>{2});
}

// Lines 12 and 13: what is less than the cap goes in one message; a volume of just the cap is one piece too.
TEST(Split, LessThanTheCapIsOneMessage) {
  for (std::int64_t const cap : {8, 9, 1000}) {
    auto const plans = proven(Route::split, eight_items(), NodeMap::blocks(8, 4), capped(cap));
    EXPECT_EQ(sent_in(plans, 2), (Table{{3, 4, 8}}));
  }
}

// Lines 14 to 16: with a cap of one a node of four ranks would receive eight messages.
TEST(Split, TheCapIsRaisedUntilEveryRankHasOne) {
  for (std::int64_t const cap : {1, 2}) {
    auto const plans = proven(Route::split, eight_items(), NodeMap::blocks(8, 4), capped(cap));
    EXPECT_EQ(sent_in(plans, 2), (Table{{0, 7, 2}, {1, 6, 2}, {2, 5, 2}, {3, 4, 2}}));
  }
}

// Ranks 0, 1 and 2 own nothing that leaves, and send all the same.
TEST(Split, RanksWithoutAMessageOfTheirOwnHelp) {
  Reads reads({0, 0, 0, 8, 0, 0, 0, 0});
  for (std::int32_t i = 0; i < 8; ++i) reads.add(3, i, {6});
  auto const plans = proven(Route::split, reads, NodeMap::blocks(8, 4), capped(2));
  EXPECT_EQ(sent_in(plans, 1), (Table{{3, 0, 2}, {3, 1, 2}, {3, 2, 2}}));
  EXPECT_EQ(sent_in(plans, 2), (Table{{0, 7, 2}, {1, 6, 2}, {2, 5, 2}, {3, 4, 2}}));
  EXPECT_EQ(sent_in(plans, 3), (Table{{4, 6, 2}, {5, 6, 2}, {7, 6, 2}}));
}

// Node 2 receives 3 items of node 0 and 5 of node 1. With a cap of 3 these were three messages for two ranks,
// so the cap is 4: pieces of 4, 3 and 1, dealt in this order.
TEST(Split, TheLargestPiecesOfAllNodesAreDealtFirst) {
  Reads reads({3, 0, 5, 0, 0, 0});
  for (std::int32_t i = 0; i < 3; ++i) reads.add(0, i, {4});
  for (std::int32_t i = 0; i < 5; ++i) reads.add(2, i, {5});
  auto const plans = proven(Route::split, reads, NodeMap::blocks(6, 2), capped(3));
  EXPECT_EQ(sent_in(plans, 2), (Table{{1, 5, 3}, {2, 4, 1}, {3, 4, 4}}));
}

/// Two nodes of four GPUs with two dies each; G0 to G7 are on one, G8 to G15 on the other.
NodeMap two_dies() {
  NodeMap nodes = NodeMap::blocks(16, 8);
  for (Rank r = 0; r < 16; ++r) nodes.device[testing::at(r)] = r % 8 / 2;
  return nodes;
}

/// `items` items of one rank, all read by the same ranks.
Reads to_all(Rank source, std::int32_t items, std::set<Rank> const& readers) {
  std::vector<std::int64_t> owned(16, 0);
  owned[testing::at(source)] = items;
  Reads reads(owned);
  for (std::int32_t i = 0; i < items; ++i) reads.add(source, i, readers);
  return reads;
}

/// Stages of route leader.
enum : std::size_t { near_stage, network_stage, share_stage, redistribute_stage, hand_on_stage };

// Figure 2: nobody is linked, so shares follow hops by equation 1: (5 - 2) / 5 and (5 - 3) / 5.
TEST(Leader, Figure2SharesByHops) {
  PlanOptions options;
  options.dies = {8, std::vector<int>(64, 0), std::vector<int>(64, 1)};
  options.dies.hops[0 * 8 + 2] = 2;
  options.dies.hops[0 * 8 + 3] = 3;
  auto const plans = proven(Route::leader, to_all(0, 10, {2, 3}), two_dies(), options);
  EXPECT_EQ(sent_in(plans, near_stage), (Table{{0, 2, 6}, {0, 3, 4}}));
  EXPECT_EQ(sent_in(plans, share_stage), (Table{{2, 3, 6}, {3, 2, 4}}));
  EXPECT_EQ(sent_in(plans, network_stage), Table{});
  EXPECT_EQ(sent_in(plans, hand_on_stage), Table{});
}

// Figure 3: G1 is linked with G3 and not with G2, so G3 gets all of it and hands it on (equation 2).
TEST(Leader, Figure3SharesByLinks) {
  PlanOptions options;
  options.dies = {8, std::vector<int>(64, 0), std::vector<int>(64, 1)};
  options.dies.links[1 * 8 + 3] = 1;
  auto const plans = proven(Route::leader, to_all(1, 5, {2, 3}), two_dies(), options);
  EXPECT_EQ(sent_in(plans, near_stage), (Table{{1, 3, 5}}));
  EXPECT_EQ(sent_in(plans, share_stage), (Table{{3, 2, 5}}));
}

// Without links and hops the shares are equal; the largest remainder is the first one's. A reader on the
// source's own GPU, and one that is alone on its GPU, get everything at once.
TEST(Leader, NothingKnownIsSharedEqually) {
  auto const plans = proven(Route::leader, to_all(0, 5, {1, 2, 3, 4}), two_dies());
  EXPECT_EQ(sent_in(plans, near_stage), (Table{{0, 1, 5}, {0, 2, 3}, {0, 3, 2}, {0, 4, 5}}));
  EXPECT_EQ(sent_in(plans, share_stage), (Table{{2, 3, 3}, {3, 2, 2}}));
}

// Figure 4: two neighbours that are peers. One message of all, then one inside the GPU.
TEST(Leader, Figure4PeersOfOneGpu) {
  auto const plans = proven(Route::leader, to_all(9, 4, {0, 1}), two_dies());
  ASSERT_EQ(plans[0].stages.size(), 5u);
  EXPECT_EQ(sent_in(plans, network_stage), (Table{{9, 0, 4}}));
  EXPECT_EQ(sent_in(plans, redistribute_stage), Table{});
  EXPECT_EQ(sent_in(plans, hand_on_stage), (Table{{0, 1, 4}}));
  EXPECT_EQ(plans[0].stages[redistribute_stage].after, std::vector<StageId>{network_stage});
  EXPECT_EQ(plans[0].stages[hand_on_stage].after, std::vector<StageId>{redistribute_stage});
  EXPECT_EQ(plans[0].stages[share_stage].after, std::vector<StageId>{near_stage});
}

// Figure 5: m/2 to each leader, leaders exchange halves, then everything to the peers.
TEST(Leader, Figure5SomeArePeers) {
  auto const plans = proven(Route::leader, to_all(9, 4, {0, 1, 2, 3}), two_dies());
  EXPECT_EQ(sent_in(plans, network_stage), (Table{{9, 0, 2}, {9, 2, 2}}));
  EXPECT_EQ(sent_in(plans, redistribute_stage), (Table{{0, 2, 2}, {2, 0, 2}}));
  EXPECT_EQ(sent_in(plans, hand_on_stage), (Table{{0, 1, 4}, {2, 3, 4}}));
}

// Figure 6: no peers, so nothing is handed on.
TEST(Leader, Figure6NoneArePeers) {
  auto const plans = proven(Route::leader, to_all(9, 6, {0, 2, 4}), two_dies());
  EXPECT_EQ(sent_in(plans, network_stage), (Table{{9, 0, 2}, {9, 2, 2}, {9, 4, 2}}));
  EXPECT_EQ(sent_in(plans, redistribute_stage),
            (Table{{0, 2, 2}, {0, 4, 2}, {2, 4, 2}, {2, 0, 2}, {4, 0, 2}, {4, 2, 2}}));
  EXPECT_EQ(sent_in(plans, hand_on_stage), Table{});
}

// Where algorithms 2 and 3 of the paper contradict each other: only the odd die of a GPU reads.
TEST(Leader, TheLowestReaderLeadsWhicheverDieItIs) {
  auto const plans = proven(Route::leader, to_all(9, 4, {1, 2, 3}), two_dies());
  EXPECT_EQ(sent_in(plans, network_stage), (Table{{9, 1, 2}, {9, 2, 2}}));
  EXPECT_EQ(sent_in(plans, redistribute_stage), (Table{{1, 2, 2}, {2, 1, 2}}));
  EXPECT_EQ(sent_in(plans, hand_on_stage), (Table{{2, 3, 4}}));
}

// Items that differ for every reader: nothing to share, one message a GPU.
TEST(Leader, DifferentItemsGoToLeadersInOneMessageAGpu) {
  std::vector<std::int64_t> owned(16, 0);
  owned[9] = 4;
  Reads reads(owned);
  for (std::int32_t i = 0; i < 4; ++i) reads.add(9, i, {i});
  auto const plans = proven(Route::leader, reads, two_dies());
  EXPECT_EQ(sent_in(plans, network_stage), (Table{{9, 0, 2}, {9, 2, 2}}));
  EXPECT_EQ(sent_in(plans, redistribute_stage), Table{});
  EXPECT_EQ(sent_in(plans, hand_on_stage), (Table{{0, 1, 1}, {2, 3, 1}}));
}

// Ranks on the processor are grouped by socket.
TEST(Leader, OnProcessorsASocketHasALeader) {
  NodeMap nodes = NodeMap::blocks(16, 8);
  for (Rank r = 0; r < 16; ++r) nodes.socket[testing::at(r)] = r % 8 / 4;
  auto const plans = proven(Route::leader, to_all(9, 4, {1, 3, 4, 7}), nodes);
  EXPECT_EQ(sent_in(plans, network_stage), (Table{{9, 1, 2}, {9, 4, 2}}));
  EXPECT_EQ(sent_in(plans, redistribute_stage), (Table{{1, 4, 2}, {4, 1, 2}}));
  EXPECT_EQ(sent_in(plans, hand_on_stage), (Table{{1, 3, 4}, {4, 7, 4}}));
}

// Section 2.3.1: each socket gathers, then its node. Rank 0 sends to node 1; the other socket gathers at 3.
TEST(ThreeStep, GathersBySocketFirst) {
  NodeMap nodes = NodeMap::blocks(8, 4);
  nodes.socket = {0, 0, 1, 1, 0, 0, 1, 1};
  Reads const reads =
      Reads({1, 1, 1, 1, 0, 0, 0, 0}).add(0, 0, {4}).add(1, 0, {4}).add(2, 0, {4}).add(3, 0, {4});
  PlanOptions options;
  options.by_socket = true;
  auto const plans = proven(Route::three_step, reads, nodes, options);
  ASSERT_EQ(plans[0].stages.size(), 5u);
  EXPECT_EQ(sent_in(plans, 1), (Table{{1, 0, 1}, {2, 3, 1}}));
  EXPECT_EQ(sent_in(plans, 2), (Table{{3, 0, 2}}));
  EXPECT_EQ(sent_in(plans, 3), (Table{{0, 7, 4}}));
  EXPECT_EQ(sent_in(plans, 4), (Table{{7, 4, 4}}));
}

TEST(Order, EveryRankBeginsWithTheNextOne) {
  Reads reads({1, 1, 1, 1});
  for (Rank s = 0; s < 4; ++s) reads.add(s, 0, {0, 1, 2, 3});
  auto const plans = proven(Route::direct, reads, NodeMap::blocks(4, 4));
  EXPECT_EQ(sent_in(plans, 0), (Table{{0, 1, 1},
                                      {0, 2, 1},
                                      {0, 3, 1},
                                      {1, 2, 1},
                                      {1, 3, 1},
                                      {1, 0, 1},
                                      {2, 3, 1},
                                      {2, 0, 1},
                                      {2, 1, 1},
                                      {3, 0, 1},
                                      {3, 1, 1},
                                      {3, 2, 1}}));
}

TEST(Options, AreRefusedWhereTheyHaveNoUse) {
  NodeMap const nodes = two_dies();
  auto const text = [&](Route route, auto&& set) {
    PlanOptions options;
    set(options);
    try {
      make_plans(route, to_all(0, 1, {1}).patterns(), nodes, options);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  auto const expect = [](std::string const& said, char const* part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  expect(text(Route::split, [](auto& o) { o.message_cap = 0; }), "options.message_cap: 0 items");
  expect(text(Route::split, [](auto& o) { o.by_socket = true; }),
         "options.by_socket: of no use to route split");
  std::vector<int> const zeros(64, 0);
  expect(text(Route::split, [&](auto& o) { o.dies = {8, zeros, zeros}; }), "of no use to route split");
  expect(text(Route::leader,
              [&](auto& o) {
                o.dies = {4, zeros, zeros};
              }),
         "4 dies where a node has 8 ranks");
  expect(text(Route::leader, [&](auto& o) { o.dies = {8, zeros, {}}; }), "a table of 0 numbers for 8 dies");
  expect(text(Route::leader,
              [&](auto& o) {
                o.dies = {8, zeros, std::vector<int>(64, -1)};
              }),
         "-1 links or hops");
  EXPECT_EQ(text(Route::leader, [&](auto& o) { o.dies = {8, zeros, zeros}; }), "accepted");
}

}  // namespace
}  // namespace hostless
