#include "hostless/plan/node_map.hpp"

#include <gtest/gtest.h>

#include "hostless/base/error.hpp"
#include "hostless/plan/exchange_plan.hpp"

namespace hostless {
namespace {

TEST(NodeMap, BlocksFillNodesInOrder) {
  NodeMap const map = NodeMap::blocks(7, 3);
  EXPECT_EQ(map.node, (std::vector<int>{0, 0, 0, 1, 1, 1, 2}));
  EXPECT_EQ(map.socket, std::vector<int>(7, 0));
  EXPECT_EQ(map.device, std::vector<int>(7, -1));
  EXPECT_EQ(map.ranks(), 7);
  EXPECT_EQ(map.nodes(), 3);
  EXPECT_EQ(map.ranks_of(1), (std::vector<Rank>{3, 4, 5}));
  EXPECT_TRUE(map.ranks_of(3).empty());
  EXPECT_TRUE(map.same_node(3, 5));
  EXPECT_FALSE(map.same_node(2, 3));
}

TEST(NodeMap, AnEmptyMapHasNoNodes) { EXPECT_EQ(NodeMap{}.nodes(), 0); }

TEST(NodeMap, RefusesNoRanks) {
  EXPECT_THROW(NodeMap::blocks(0, 1), Error);
  EXPECT_THROW(NodeMap::blocks(1, 0), Error);
}

TEST(Names, RoutesAreReadByTheirNames) {
  for (Route route : all_routes) EXPECT_EQ(route_from(name(route)), route);
  EXPECT_STREQ(name(Route::two_step), "two_step");
  try {
    route_from("four_step");
    FAIL();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("four_step"), std::string::npos);
  }
  try {  // a word of programs that ask the nodes
    route_from("auto");
    FAIL();
  } catch (Error const& error) {
    EXPECT_NE(std::string(error.what()).find("Call automatic_route"), std::string::npos);
  }
}

TEST(Names, OfEnumerations) {
  EXPECT_STREQ(name(Space::pinned), "pinned");
  EXPECT_STREQ(name(Locality::network), "network");
  EXPECT_STREQ(name(ReuseGuarantee::credit), "credit");
}

}  // namespace
}  // namespace hostless
