#include "hostless/plan/shape.hpp"

#include <gtest/gtest.h>

#include <functional>

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
  std::function<void(HaloPlan&)> how;
  char const* text;
};

// Rank 7 of figure 2.3 by three steps: buffers 0 (bound), 1 (landing), 2 or none; stage 2 receives, stage 3
// sends.
TEST(Shape, EveryFieldOfAPlanIsLookedAt) {
  HaloPlan const good = make_plan(Route::three_step, testing::figure().patterns(), NodeMap::blocks(8, 4), 7);
  ASSERT_EQ(flaw(good), "");
  Spoiled const all[] = {
      {[](HaloPlan& p) { p.version = 1; }, "version: 1"},
      {[](HaloPlan& p) { p.nodes.socket.clear(); }, "nodes.socket"},
      {[](HaloPlan& p) { p.ranks = 9; }, "ranks: 9"},
      {[](HaloPlan& p) { p.rank = 8; }, "rank: 8"},
      {[](HaloPlan& p) { p.owned = -1; }, "owned: -1"},
      {[](HaloPlan& p) { p.ghosts = 0x7fffffff; }, "owned: 4 owned items and 2147483647 ghosts"},
      {[](HaloPlan& p) { p.ghosts_below = p.ghosts + 1; }, "ghosts_below: 3 is not in [0, 2]"},
      {[](HaloPlan& p) { p.ghosts_below = -1; }, "ghosts_below: -1"},
      {[](HaloPlan& p) { p.buffers.clear(); }, "buffers: buffer 0"},
      {[](HaloPlan& p) { p.buffers[1].id = 5; }, "buffers[1].id"},
      {[](HaloPlan& p) { p.buffers[1].home = 0; }, "buffers[1].home"},
      {[](HaloPlan& p) { p.buffers[1].items = -4; }, "buffers[1].items"},
      {[](HaloPlan& p) { p.buffers[1].epochs = 3; }, "buffers[1].epochs"},
      {[](HaloPlan& p) { p.buffers[0].items = 99; }, "buffers[0].items: 99"},
      {[](HaloPlan& p) { p.stages[1].id = -1; }, "stages[1].id: -1"},
      {[](HaloPlan& p) { p.stages[1].id = 0; }, "stages[1].id: 0 is used twice"},
      {[](HaloPlan& p) { p.stages.resize(257); }, "stages: 257"},
      {[](HaloPlan& p) { p.stages[3].after = {8}; }, "stages[3].after[0]: stage 8"},
      {[](HaloPlan& p) { p.stages[2].unpack[0].actor = 0; }, "stages[2].unpack[0].actor"},
      {[](HaloPlan& p) { p.stages[2].unpack[0].from.buffer = 9; }, "stages[2].unpack[0].from.buffer: 9"},
      {[](HaloPlan& p) { p.stages[2].unpack[0].to.buffer = -1; }, "stages[2].unpack[0].to.buffer: -1"},
      {[](HaloPlan& p) { p.stages[2].unpack[0].to.first = 7; }, "stages[2].unpack[0].to.first: 7"},
      {[](HaloPlan& p) { p.stages[2].unpack[0].to.count = 3; }, "stages[2].unpack[0].to.count"},
      {[](HaloPlan& p) { p.stages[2].unpack[0].to.count = -1; }, "to.count: a box of 1 rows of -1"},
      {[](HaloPlan& p) { p.stages[2].unpack[0].to.rows = 0; }, "to.count: a box of 0 rows"},
      {[](HaloPlan& p) { p.stages[2].unpack[0].to.rows = 2; }, "to.stride: 0 makes rows of 2"},
      {[](HaloPlan& p) { p.stages[2].unpack[0].to.count = 1; }, "stages[2].unpack[0].to: takes 1 items of 2"},
      {[](HaloPlan& p) {
         p.stages[2].unpack[0].to.index = {0, 9};
       },
       "to.index[1]: item 13"},
      {[](HaloPlan& p) {
         p.stages[2].unpack[0].to.index = {-5, 0};
       },
       "to.index[0]: item -1"},
      {[](HaloPlan& p) { p.stages[3].out[0].id = -1; }, "stages[3].out[0].id"},
      {[](HaloPlan& p) { p.stages[3].out[0].source = 6; }, "stages[3].out[0].source: 6"},
      {[](HaloPlan& p) { p.stages[3].out[0].source = 8; }, "stages[3].out[0].source: 8 is no rank"},
      {[](HaloPlan& p) { p.stages[3].out[0].target = 8; }, "stages[3].out[0].target: 8 is no rank"},
      {[](HaloPlan& p) { p.stages[3].out[0].target = 7; }, "stages[3].out[0].target: rank 7 sends to itself"},
      {[](HaloPlan& p) { p.stages[3].out[0].from = 9; }, "stages[3].out[0].from: buffer 9"},
      {[](HaloPlan& p) { p.stages[3].out[0].items = 99; }, "stages[3].out[0].items: 99"},
      {[](HaloPlan& p) { p.stages[3].out[0].items = -1; }, "stages[3].out[0].items: -1"},
      {[](HaloPlan& p) { p.stages[3].out[0].from_first = 99; }, "items from 99"},
      {[](HaloPlan& p) { p.stages[3].out[0].answer = -2; }, "stages[3].out[0].answer"},
      {[](HaloPlan& p) { p.stages[3].out[0].trigger = -2; }, "stages[3].out[0].trigger"},
      {[](HaloPlan& p) { p.stages[2].in[0].target = 1; },
       "stages[2].in[0].target: 1 is not this plan's rank"},
      {[](HaloPlan& p) { p.stages[2].in[0].to = -1; }, "stages[2].in[0].to: buffer -1"},
      {[](HaloPlan& p) { p.stages[2].in[0].to_first = 1; }, "stages[2].in[0].items: 3 items from 1"},
      {[](HaloPlan& p) { p.tiling.block = 0; }, "tiling.block: 0"},
      {[](HaloPlan& p) { p.tiling.slices = 0; }, "tiling.slices: 0"},
      {[](HaloPlan& p) { p.tiling.leaves = 5; }, "tiling.leaves: 5"},
      {[](HaloPlan& p) { p.needs.pop_back(); }, "needs: 263 entries for 264 slices"},
      {[](HaloPlan& p) { p.needs[3] = {7}; }, "needs[3]: stage 7 does not exist"},
  };
  for (Spoiled const& spoiled : all) {
    HaloPlan plan = good;
    spoiled.how(plan);
    EXPECT_NE(flaw(plan).find(spoiled.text), std::string::npos) << spoiled.text << " | " << flaw(plan);
  }
}

TEST(Shape, BoxesWithAStrideAreAccepted) {
  HaloPlan plan = make_plan(Route::direct, testing::Reads({8}).add(0, 0, {0}).add(0, 4, {0}).patterns(),
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
      {[](Pattern& p) { p.item.pop_back(); }, "patterns[1].first: 3 entries for 1 items"},
      {[](Pattern& p) { p.first.clear(); }, "patterns[1].first: 0 entries"},
      {[](Pattern& p) { p.first[0] = 1; }, "patterns[1].first[0]: 1"},
      {[](Pattern& p) { p.first[1] = 9; }, "patterns[1].first[1]: 9"},
      {[](Pattern& p) { p.first[1] = -1; }, "patterns[1].first[1]: -1"},
      {[](Pattern& p) { p.first[2] = 3; }, "patterns[1].first[2]: 3 is not the number of receivers, 4"},
      {[](Pattern& p) { p.receiver[1] = 4; }, "patterns[1].receiver[1]: 4"},
      {[](Pattern& p) { p.receiver[3] = 8; }, "patterns[1].receiver[3]: 8"},
  };
  for (auto const& spoiled : all) {
    std::vector<Pattern> patterns = good;
    spoiled.how(patterns[1]);
    EXPECT_NE(flaw(patterns).find(spoiled.text), std::string::npos)
        << spoiled.text << " | " << flaw(patterns);
  }
}

}  // namespace
}  // namespace hostless
