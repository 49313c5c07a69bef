#include "hostless/plan/shape.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <span>

#include "hostless/plan/routes.hpp"
#include "plan_cases.hpp"

namespace hostless {
namespace {

TEST(Shape, NodeMaps) {
  NodeMap map = NodeMap::blocks(4, 2);
  EXPECT_EQ(flaw(map), "");
  map.node = {0, 0, 2, 2};
  EXPECT_EQ(flaw(map), "node: no rank is on node 1 of 3");
  map.node = {0, 0, 1, 4};
  EXPECT_EQ(flaw(map), "node[3]: 4 is not in [0, 4)");
  map = NodeMap::blocks(4, 2);
  map.socket[1] = -1;
  EXPECT_EQ(flaw(map), "socket[1]: -1 is negative");
  map = NodeMap::blocks(4, 2);
  map.device[1] = -2;
  EXPECT_EQ(flaw(map), "device[1]: -2 is below -1");
  map.device.pop_back();
  EXPECT_EQ(flaw(map), "socket: 4 nodes, 4 sockets and 3 devices, must be one of each a rank");
}

struct Spoiled {
  std::function<void(ExchangePlan&)> how;
  char const* text;
};

void expect_flaws(ExchangePlan const& good, std::span<Spoiled const> all) {
  for (Spoiled const& spoiled : all) {
    ExchangePlan plan = good;
    spoiled.how(plan);
    EXPECT_NE(flaw(plan).find(spoiled.text), std::string::npos) << spoiled.text << " | " << flaw(plan);
  }
}

// Tables by id: one of 2^31 - 1 would take 8 GiB.
TEST(Shape, StageIdsHaveAMost) {
  ExchangePlan plan = make_plan(Route::three_step, testing::figure().patterns(), NodeMap::blocks(8, 4), 7);
  plan.stages[0].id = Stage::largest_id;
  EXPECT_EQ(flaw(plan), "");
  for (StageId const id : {Stage::largest_id + 1, 0x7fffffff}) {
    plan.stages[0].id = id;
    EXPECT_EQ(flaw(plan), fmt::format("stages[0].id: {} is not in [0, 65535]", id));
  }
}

// Rank 7 of figure 2.3 by three steps: buffers 0 (bound), 1 (landing), 2 or none; stage 2 receives, stage 3
// sends.
TEST(Shape, EveryFieldOfAPlanIsLookedAt) {
  ExchangePlan const good =
      make_plan(Route::three_step, testing::figure().patterns(), NodeMap::blocks(8, 4), 7);
  ASSERT_EQ(flaw(good), "");
  Spoiled const all[] = {
      {[](ExchangePlan& p) { p.version = 2; }, "version: 2 is not 4"},
      {[](ExchangePlan& p) { p.nodes.socket.clear(); }, "nodes.socket"},
      {[](ExchangePlan& p) { p.ranks = 9; }, "ranks: 9"},
      {[](ExchangePlan& p) { p.rank = 8; }, "rank: 8"},
      {[](ExchangePlan& p) { p.owned = -1; }, "owned: -1"},
      {[](ExchangePlan& p) { p.ghosts = 0x7fffffff; }, "owned: 4 owned items and 2147483647 ghosts"},
      {[](ExchangePlan& p) { p.ghosts_below = p.ghosts + 1; }, "ghosts_below: 3 is not in [0, 2]"},
      {[](ExchangePlan& p) { p.ghosts_below = -1; }, "ghosts_below: -1"},
      {[](ExchangePlan& p) { p.buffers.clear(); }, "buffers: buffer 0"},
      {[](ExchangePlan& p) { p.buffers[1].id = 5; }, "buffers[1].id"},
      {[](ExchangePlan& p) { p.buffers[1].home = 0; }, "buffers[1].home"},
      {[](ExchangePlan& p) { p.buffers[1].items = -4; }, "buffers[1].items"},
      {[](ExchangePlan& p) { p.buffers[1].epochs = 3; }, "buffers[1].epochs"},
      {[](ExchangePlan& p) { p.buffers[0].items = 99; }, "buffers[0].items: 99"},
      {[](ExchangePlan& p) { p.stages[1].id = -1; }, "stages[1].id: -1"},
      {[](ExchangePlan& p) { p.stages[1].id = 0; }, "stages[1].id: 0 is used twice"},
      {[](ExchangePlan& p) { p.stages.resize(257); }, "stages: 257"},
      {[](ExchangePlan& p) { p.stages[3].after = {8}; }, "stages[3].after[0]: stage 8"},
      {[](ExchangePlan& p) { p.stages[2].unpack[0].actor = 0; }, "stages[2].unpack[0].actor"},
      {[](ExchangePlan& p) { p.stages[2].unpack[0].from.buffer = 9; }, "stages[2].unpack[0].from.buffer: 9"},
      {[](ExchangePlan& p) { p.stages[2].unpack[0].to.buffer = -1; }, "stages[2].unpack[0].to.buffer: -1"},
      {[](ExchangePlan& p) { p.stages[2].unpack[0].to.first = 7; }, "stages[2].unpack[0].to.first: 7"},
      {[](ExchangePlan& p) { p.stages[2].unpack[0].to.count = 3; }, "stages[2].unpack[0].to.count"},
      {[](ExchangePlan& p) { p.stages[2].unpack[0].to.count = -1; }, "to.count: a box of 1 row of -1"},
      {[](ExchangePlan& p) { p.stages[2].unpack[0].to.rows = 0; }, "to.count: a box of 0 rows"},
      {[](ExchangePlan& p) { p.stages[2].unpack[0].to.rows = 2; }, "to.stride: 0 makes rows of 2"},
      {[](ExchangePlan& p) { p.stages[2].unpack[0].to.count = 1; },
       "stages[2].unpack[0].to: takes 1 item of 2"},
      {[](ExchangePlan& p) { p.stages[3].out[0].id = -1; }, "stages[3].out[0].id"},
      {[](ExchangePlan& p) { p.stages[3].out[0].source = 6; }, "stages[3].out[0].source: 6"},
      {[](ExchangePlan& p) { p.stages[3].out[0].source = 8; }, "stages[3].out[0].source: 8 is no rank"},
      {[](ExchangePlan& p) { p.stages[3].out[0].target = 8; }, "stages[3].out[0].target: 8 is no rank"},
      {[](ExchangePlan& p) { p.stages[3].out[0].target = 7; },
       "stages[3].out[0].target: rank 7 sends to itself"},
      {[](ExchangePlan& p) { p.stages[3].out[0].from = 9; }, "stages[3].out[0].from: buffer 9"},
      {[](ExchangePlan& p) { p.stages[3].out[0].items = 99; }, "stages[3].out[0].items: 99"},
      {[](ExchangePlan& p) { p.stages[3].out[0].items = -1; }, "stages[3].out[0].items: -1"},
      {[](ExchangePlan& p) { p.stages[3].out[0].from_first = 99; }, "items from 99"},
      {[](ExchangePlan& p) { p.stages[3].out[0].answer = -2; }, "stages[3].out[0].answer"},
      {[](ExchangePlan& p) { p.stages[3].out[0].trigger = -2; }, "stages[3].out[0].trigger"},
      {[](ExchangePlan& p) { p.stages[2].in[0].target = 1; },
       "stages[2].in[0].target: 1 is not this plan's rank"},
      {[](ExchangePlan& p) { p.stages[2].in[0].to = -1; }, "stages[2].in[0].to: buffer -1"},
      {[](ExchangePlan& p) { p.stages[2].in[0].to_first = 1; }, "stages[2].in[0].items: 3 items from 1"},
      {[](ExchangePlan& p) { p.receive = 2; }, "receive: buffer 2 is neither 0 nor 1"},
      {[](ExchangePlan& p) { p.receive = 1; }, "ghosts_below: 2 is not in [0, 0]"},
      {[](ExchangePlan& p) { p.receive = 1, p.ghosts_below = 0; },
       "buffers[0].items: 6 is not 4 owned items"},
      {[](ExchangePlan& p) { p.receive = 1, p.ghosts_below = 0, p.buffers[0].items = 4; },
       "buffers[1].items: 3 is not 2 ghosts"},
      {[](ExchangePlan& p) {
         p.receive = 1, p.ghosts_below = 0, p.buffers[0].items = 4, p.buffers.resize(1);
       },
       "buffers: buffer 1, that of the ghosts, is missing"},
      {[](ExchangePlan& p) { p.stages[3].out[0].locality = Locality::network; },
       "stages[3].out[0].locality: network (`reach` in a plan file), but ranks 7 and 4 are socket apart"},
      {[](ExchangePlan& p) { p.nodes.socket[4] = 1; },
       "stages[3].out[0].locality: socket (`reach` in a plan file), but ranks 7 and 4 are node apart"},
      {[](ExchangePlan& p) { p.nodes.device[7] = p.nodes.device[4] = 2; },
       "stages[3].out[0].locality: socket (`reach` in a plan file), but ranks 7 and 4 are device apart"},
  };
  expect_flaws(good, all);
}

// A list or a box, and nothing of the other.
TEST(Shape, PiecesSayNoMoreThanTheyNeed) {
  ExchangePlan const good =
      make_plan(Route::three_step, testing::figure().patterns(), NodeMap::blocks(8, 4), 7);
  Spoiled const all[] = {
      {[](ExchangePlan& p) { p.stages[2].unpack[0].to.stride = 3; },
       "to.stride: 3 between the rows of a box of one"},
      {[](ExchangePlan& p) {
         p.stages[2].unpack[0].to.index = {0, 1};
       },
       "to.index: a list of items beside a box of 1 row of 2"},
      {[](ExchangePlan& p) {
         p.stages[2].unpack[0].to.count = 0, p.stages[2].unpack[0].to.index = {0, 9};
       },
       "to.index[1]: item 13"},
      {[](ExchangePlan& p) {
         p.stages[2].unpack[0].to.count = 0, p.stages[2].unpack[0].to.index = {-5, 0};
       },
       "to.index[0]: item -1"},
  };
  expect_flaws(good, all);
}

TEST(Shape, BoxesWithAStrideAreAccepted) {
  ExchangePlan plan = make_plan(Route::direct, testing::Reads({8}).add(0, 0, {0}).add(0, 4, {0}).patterns(),
                                NodeMap::blocks(1, 1), 0);
  Pieces& from = plan.stages[0].pack[0].from;
  from.index.clear();
  from.count = 1, from.rows = 2, from.stride = 4;
  EXPECT_EQ(flaw(plan), "");
  from.stride = 10;
  EXPECT_EQ(flaw(plan), "stages[0].pack[0].from.count: the box ends behind the buffer's 10 items");
}

TEST(Shape, Patterns) {
  std::vector<Pattern> const good = testing::figure().patterns();
  EXPECT_EQ(flaw(good), "");
  struct {
    std::function<void(Pattern&)> how;
    char const* text;
  } const all[] = {
      {[](Pattern& p) { p.owned = -1; }, "patterns[1].owned: -1"},
      {[](Pattern& p) { p.owned = 3; }, "patterns[1].item[1]: 3"},
      {[](Pattern& p) { p.item[0] = -1; }, "patterns[1].item[0]: -1"},
      {[](Pattern& p) { p.item.pop_back(); }, "patterns[1].first: 3 entries for 1 item, must"},
      {[](Pattern& p) { p.first.clear(); }, "patterns[1].first: 0 entries"},
      {[](Pattern& p) { p.first[0] = 1; }, "patterns[1].first[0]: 1"},
      {[](Pattern& p) { p.first[1] = 9; }, "patterns[1].first[1]: 9"},
      {[](Pattern& p) { p.first[1] = -1; }, "patterns[1].first[1]: -1"},
      {[](Pattern& p) { p.first[2] = 3; }, "patterns[1].first[2]: 3 is not the number of receivers, 4"},
      {[](Pattern& p) { p.receiver[1] = 4; }, "patterns[1].receiver[1]: 4"},
      {[](Pattern& p) { p.receiver[3] = 8; }, "patterns[1].receiver[3]: 8"},
      {[](Pattern& p) { p.position = {0}; }, "patterns[1].position: 1 entry for 0 ghosts"},
  };
  for (auto const& spoiled : all) {
    std::vector<Pattern> patterns = good;
    spoiled.how(patterns[1]);
    EXPECT_NE(flaw(patterns).find(spoiled.text), std::string::npos)
        << spoiled.text << " | " << flaw(patterns);
  }
}

TEST(Shape, PositionsOfGhosts) {
  std::vector<Pattern> patterns = testing::figure().patterns();  // rank 7 reads two items of rank 1
  patterns[7].position = {1, 0};
  EXPECT_EQ(flaw(patterns), "");
  patterns[7].position = {1, 1};
  EXPECT_EQ(flaw(patterns), "patterns[7].position[1]: 1 is there twice");
  patterns[7].position = {2, 0};
  EXPECT_EQ(flaw(patterns), "patterns[7].position[0]: 2 is not below the 2 ghosts");
  patterns[7].position = {-1, 0};
  EXPECT_EQ(flaw(patterns), "patterns[7].position[0]: -1 is not below the 2 ghosts");
}

}  // namespace
}  // namespace hostless
