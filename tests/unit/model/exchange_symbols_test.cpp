#include "hostless/model/exchange_symbols.hpp"

#include <gtest/gtest.h>

#include "hostless/base/error.hpp"

namespace hostless {
namespace {

// Four ranks on two nodes. Rank 0 sends item 0 to ranks 2 and 3 (one node), item 1 to rank 1 (its own node)
// and item 2 to rank 2; rank 1 sends two items to rank 3; the others send nothing.
std::vector<Pattern> patterns() {
  std::vector<Pattern> all(4);
  all[0] = {3, {0, 1, 2}, {0, 2, 3, 4}, {2, 3, 1, 2}, {}};
  all[1] = {2, {0, 1}, {0, 1, 2}, {3, 3}, {}};
  all[2].first = all[3].first = {0};
  return all;
}

TEST(ExchangeSymbols, OfAPatternByHand) {
  ExchangeSymbols const x = symbols_of(patterns(), NodeMap::blocks(4, 2), 8);
  EXPECT_EQ(x.s_proc, 24) << "rank 0: two items to rank 2, one to rank 3";
  EXPECT_EQ(x.s_node, 40);
  EXPECT_EQ(x.s_node_to_node, 40);
  EXPECT_EQ(x.m_proc, 2);
  EXPECT_EQ(x.m_proc_to_node, 1);
  EXPECT_EQ(x.m_node_to_node, 3);
  EXPECT_EQ(x.m_node, 1);
  EXPECT_DOUBLE_EQ(x.kept, 32.0 / 40.0) << "item 0 goes to the node once";
}

TEST(ExchangeSymbols, NothingLeavesOneNode) {
  ExchangeSymbols const x = symbols_of(patterns(), NodeMap::blocks(4, 4), 8);
  EXPECT_EQ(x.s_node, 0);
  EXPECT_EQ(x.kept, 1);
  EXPECT_THROW(symbols_of(patterns(), NodeMap::blocks(3, 1), 8), Error);
}

}  // namespace
}  // namespace hostless
