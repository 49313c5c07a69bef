// Which route is taken for patterns whose bytes and messages between nodes can be counted by hand.
#include "exchange/neighborhood/automatic_route.hpp"

#include <gtest/gtest.h>

#include "plan_cases.hpp"

namespace hostless {
namespace {

using testing::at;
using testing::Reads;

/// Every rank reads the one item of those that `edge` says.
template <class Edge>
Route taken(int ranks, int of_a_node, std::int64_t bytes, Edge const& edge) {
  Reads reads(std::vector<std::int64_t>(at(ranks), 1));
  for (Rank source = 0; source < ranks; ++source)
    for (Rank target = 0; target < ranks; ++target)
      if (edge(source, target)) reads.add(source, 0, {target});
  std::vector<std::vector<std::int64_t>> const sizes(at(ranks), std::vector<std::int64_t>{bytes});
  return automatic_route(reads.patterns(), NodeMap::blocks(ranks, of_a_node), sizes, {});
}

// A ring has nothing that a node reads twice; of everybody, each item is read by all ranks of the other nodes.
TEST(AutomaticRoute, GoesByWhatMoves) {
  auto const ring = [](int ranks) {
    return [=](Rank a, Rank b) { return (a + 1) % ranks == b || (b + 1) % ranks == a; };
  };
  auto const everybody = [](Rank a, Rank b) { return a != b; };
  auto const first_of_a_node = [](Rank a, Rank b) { return a != b && a % 4 == 0 && b % 4 == 0; };
  for (std::int64_t const bytes : {8, 4096, 262144, 4194304}) {
    EXPECT_EQ(taken(12, 4, bytes, ring(12)), Route::direct) << bytes;
    EXPECT_NE(taken(12, 4, bytes, everybody), Route::direct) << bytes;
    EXPECT_EQ(taken(12, 12, bytes, everybody), Route::direct) << bytes;
    EXPECT_EQ(taken(12, 1, bytes, everybody), Route::direct) << bytes;
    // Short ones are shared out over the ranks of their node: the first rank would start both.
    if (bytes >= 4096) {
      EXPECT_EQ(taken(12, 4, bytes, first_of_a_node), Route::direct) << bytes;
    }
  }
}

}  // namespace
}  // namespace hostless
