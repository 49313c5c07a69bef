// Grids of ranks whose neighbourhoods are timed: their shapes follow from who is far away.
#include "bench/neighbor/neighbors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace hostless::bench {
namespace {

// Along a closed axis of n ranks a radius of (n - 1) / 2 reaches all, and no more than all.
TEST(BenchNeighbors, GridsAreAsNearToACubeAsCanBe) {
  auto const reached = [](int ranks, int dimension, int radius) {
    return moore(ranks, 0, dimension, radius).sources.size() + 1;
  };
  EXPECT_EQ(reached(72, 2, 4), 72u);  // 9 x 8; of 12 x 6 it would be 9 x 6
  EXPECT_EQ(reached(72, 2, 3), 7u * 7);
  EXPECT_EQ(reached(72, 3, 2), 5u * 4 * 3);  // 6 x 4 x 3
  EXPECT_EQ(reached(64, 3, 2), 64u);
  EXPECT_EQ(reached(7, 3, 2), 5u);
  EXPECT_EQ(reached(1, 4, 1), 1u);
  EXPECT_EQ(reached(1296, 4, 2), 625u);  // 6 x 6 x 6 x 6
}

TEST(BenchNeighbors, OthersReachBack) {
  for (int const ranks : {12, 30, 72})
    for (int rank = 0; rank < ranks; ++rank) {
      Neighbors const mine = moore(ranks, rank, 2, 1);
      EXPECT_EQ(mine.sources, mine.destinations);
      for (int const other : mine.destinations) {
        auto const theirs = moore(ranks, other, 2, 1).sources;
        EXPECT_TRUE(std::find(theirs.begin(), theirs.end(), rank) != theirs.end()) << rank << ' ' << other;
      }
    }
}

// The ranks that tables of the sign test give.
TEST(BenchNeighbors, MediansAreBoundByOrderStatistics) {
  struct Case {
    int n, k;
  };
  for (auto const [n, k] : {Case{6, 1}, {8, 1}, {9, 2}, {10, 2}, {15, 4}, {20, 6}, {25, 8}, {100, 40}}) {
    std::vector<double> values;
    for (int v = n; v > 0; --v) values.push_back(v);
    MedianBound const bound = median_bound(values);
    EXPECT_EQ(bound.median, (n + 1) / 2.0) << n;
    EXPECT_EQ(bound.low, k) << n;
    EXPECT_EQ(bound.high, n + 1 - k) << n;
  }
  MedianBound const few = median_bound({3, 1, 2, 9, 4});
  EXPECT_EQ(few.median, 3);
  EXPECT_EQ(few.low, 0);
  EXPECT_TRUE(std::isinf(few.high));
}

}  // namespace
}  // namespace hostless::bench
