// Graphs by name: counts of the table that they are from, small ones by hand, and triangulations against every circle.
#include "hostless/problems/graphs.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "hostless/base/error.hpp"
#include "problems/adjacency.hpp"
#include "sample.hpp"

namespace hostless::test {
namespace {

using problems::Adjacency;
using problems::PlanePoint;

std::size_t entries_of(Adjacency const& graph) {
  std::size_t entries = 0;
  for (auto const& neighbours : graph) entries += neighbours.size();
  return entries;
}

RowPanel rows_of(std::string const& name, int ranks = 1) {
  RowPanel all, part;
  all.clear();
  for (int rank = 0; rank < ranks; ++rank) {
    auto const source = make_graph(name, ranks, rank);
    source->panel(source->first_row(), source->last_row() - source->first_row(), part);
    std::int64_t const before = all.offset.back();
    for (std::size_t k = 1; k < part.offset.size(); ++k) all.offset.push_back(before + part.offset[k]);
    all.column.insert(all.column.end(), part.column.begin(), part.column.end());
    all.value.insert(all.value.end(), part.value.begin(), part.value.end());
  }
  return all;
}

TEST(Graphs, HaveTheRowsAndEntriesOfTheTable) {
  struct Row {
    char const* name;
    std::int64_t rows, entries;
    bool exact;
  };
  std::vector<std::string> names;
  for (auto const& [name, rows, entries, exact] : {Row{"ccc_G_06", 384, 1152, true},
                                                   {"debr_G_08", 256, 1018, true},
                                                   {"delaunay_n10", 1024, 6112, false},
                                                   {"crack", 10240, 60760, false}}) {
    SCOPED_TRACE(name);
    names.emplace_back(name);
    EXPECT_EQ(make_graph(name, 1, 0)->global_rows(), rows);
    std::int64_t const there = rows_of(name).offset.back();
    if (exact) {
      EXPECT_EQ(there, entries);
    } else {
      EXPECT_NEAR(double(there) / double(entries), 1, 0.02);
    }
    EXPECT_NE(
        describe_graph(name).find(std::to_string(rows) + " rows, " + std::to_string(there) + " entries"),
        std::string::npos)
        << describe_graph(name);
  }
  EXPECT_EQ(graph_names(), names);
}

TEST(Graphs, AreSymmetricWithOnesAndWithoutDiagonal) {
  for (std::string const& name : graph_names()) {
    SCOPED_TRACE(name);
    RowPanel const a = rows_of(name);
    std::set<std::pair<std::int64_t, std::int64_t>> pairs;
    for (std::size_t row = 0; row + 1 < a.offset.size(); ++row) {
      EXPECT_GE(a.offset[row + 1] - a.offset[row], 2) << row;
      for (auto k = static_cast<std::size_t>(a.offset[row]); k < static_cast<std::size_t>(a.offset[row + 1]);
           ++k) {
        ASSERT_EQ(a.value[k], 1.0);
        ASSERT_TRUE(k == static_cast<std::size_t>(a.offset[row]) || a.column[k - 1] < a.column[k]);
        pairs.emplace(row, a.column[k]);
      }
    }
    for (auto const& [row, column] : pairs) {
      ASSERT_NE(row, column);
      ASSERT_EQ(pairs.count({column, row}), 1u) << row << ' ' << column;
    }
  }
}

TEST(Graphs, AreTheSameForAllRankCounts) {
  for (std::string const& name : graph_names()) {
    RowPanel const whole = rows_of(name);
    for (int const ranks : {3, test::of_all(40, 7)}) {
      RowPanel const dealt = rows_of(name, ranks);
      EXPECT_EQ(dealt.offset, whole.offset) << name;
      EXPECT_EQ(dealt.column, whole.column) << name;
    }
  }
}

TEST(Graphs, OthersAreRefused) {
  EXPECT_THROW(make_graph("ccc_G_07", 1, 0), Error);
  EXPECT_THROW(make_graph("crack", 2, 2), Error);
  try {
    describe_graph("ccc_G_6");
    FAIL();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("Did you mean 'ccc_G_06'?"), std::string::npos) << error.what();
  }
}

TEST(Adjacency, OfCubeConnectedCycles) {
  for (int const d : {3, 4, 5}) {
    Adjacency const graph = problems::cube_connected_cycles(d);
    EXPECT_EQ(graph.size(), std::size_t(d) << d);
    for (auto const& neighbours : graph) EXPECT_EQ(neighbours.size(), 3u);
  }
  Adjacency const graph = problems::cube_connected_cycles(3);
  EXPECT_EQ(graph[0], (std::vector<std::int32_t>{1, 2, 3}));      // corner 0: its cycle, and corner 1
  EXPECT_EQ(graph[1], (std::vector<std::int32_t>{0, 2, 7}));      // corner 2
  EXPECT_EQ(graph[23], (std::vector<std::int32_t>{11, 21, 22}));  // corner 7, direction 2: corner 3
}

TEST(Adjacency, OfDeBruijnGraphs) {
  EXPECT_EQ(problems::de_bruijn(2), (Adjacency{{1, 2}, {0, 2, 3}, {0, 1, 3}, {1, 2}}));
  for (int const bits : {3, 5, 9})
    EXPECT_EQ(entries_of(problems::de_bruijn(bits)), (std::size_t(4) << bits) - 6);
}

// Line 0 is 0 to 3, the middle one 4 to 7 with 8 and 9 above the slit, the last 10 to 13.
TEST(Adjacency, OfAPlateWithASlit) {
  Adjacency const graph = problems::slit_plate(4, 3, 2);
  ASSERT_EQ(graph.size(), 14u);
  EXPECT_EQ(graph[4], (std::vector<std::int32_t>{0, 5}));
  EXPECT_EQ(graph[5], (std::vector<std::int32_t>{0, 1, 4, 6}));
  EXPECT_EQ(graph[6], (std::vector<std::int32_t>{1, 2, 5, 7, 9, 12, 13}));  // the tip
  EXPECT_EQ(graph[8], (std::vector<std::int32_t>{9, 10, 11}));
  EXPECT_EQ(graph[9], (std::vector<std::int32_t>{6, 8, 11, 12}));
  EXPECT_EQ(entries_of(graph), 2u * (3 * 14 - 3 - 14));  // 14 of its edges are rim
  EXPECT_EQ(entries_of(problems::slit_plate(5, 4, 0)), 2u * (3 * 20 - 3 - 14));
}

// a, b and c are edges' ends where no point is inside their circle, by the determinant as it is written down.
Adjacency by_every_circle(std::vector<PlanePoint> const& points) {
  auto const n = static_cast<std::int32_t>(points.size());
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;
  auto const is_empty = [&](std::int32_t a, std::int32_t b, std::int32_t c) {
    auto const lifted = [&](std::int32_t k) {
      auto const& [x, y] = points[static_cast<std::size_t>(k)];
      return std::array<__int128, 3>{x, y, __int128{x} * x + __int128{y} * y};
    };
    auto const [ax, ay, az] = lifted(a);
    auto const [bx, by, bz] = lifted(b);
    auto const [cx, cy, cz] = lifted(c);
    __int128 const area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
    if (area == 0) return false;
    for (std::int32_t k = 0; k < n; ++k) {
      auto const [px, py, pz] = lifted(k);
      __int128 const volume = (bx - ax) * ((cy - ay) * (pz - az) - (cz - az) * (py - ay)) -
                              (by - ay) * ((cx - ax) * (pz - az) - (cz - az) * (px - ax)) +
                              (bz - az) * ((cx - ax) * (py - ay) - (cy - ay) * (px - ax));
      if (area > 0 ? volume < 0 : volume > 0) return false;
    }
    return true;
  };
  for (std::int32_t a = 0; a < n; ++a)
    for (std::int32_t b = a + 1; b < n; ++b)
      for (std::int32_t c = b + 1; c < n; ++c)
        if (is_empty(a, b, c)) edges.insert(edges.end(), {{a, b}, {b, c}, {a, c}});
  return problems::adjacency_of(n, edges);
}

TEST(Delaunay, HasTheTrianglesWhoseCirclesAreEmpty) {
  for (std::uint64_t const seed : {1, 2, 3}) {
    auto const points = problems::random_points(60, seed);
    EXPECT_EQ(problems::delaunay(points), by_every_circle(points)) << seed;
  }
}

TEST(Delaunay, HoldsOnLinesAndCircles) {
  // The fourth on a side of the first three, the fifth beyond it on the same line.
  EXPECT_EQ(problems::delaunay(std::vector<PlanePoint>{{0, 0}, {4, 0}, {0, 4}, {2, 0}, {9, 0}}),
            (Adjacency{{2, 3}, {2, 3, 4}, {0, 1, 3, 4}, {0, 1, 2}, {1, 2}}));
  std::vector<PlanePoint> grid;  // every cell has its corners on a circle
  for (std::int64_t y = 0; y < 5; ++y)
    for (std::int64_t x = 0; x < 6; ++x) grid.push_back({x * x % 7 + 7 * x, 9 * y});
  std::swap(grid[2], grid[7]);  // the first three are on no line
  EXPECT_EQ(entries_of(problems::delaunay(grid)), 2u * (3 * 30 - 3 - 18));
}

TEST(RandomPoints, AreDistinctAndOfTheirSeed) {
  auto const points = problems::random_points(1024, 1);
  std::set<std::pair<std::int64_t, std::int64_t>> pairs;
  for (PlanePoint const& p : points) {
    EXPECT_TRUE(p.x >= 0 && p.x < 1 << 20 && p.y >= 0 && p.y < 1 << 20);
    pairs.emplace(p.x, p.y);
  }
  EXPECT_EQ(pairs.size(), 1024u);
  EXPECT_NE(points.front().x, problems::random_points(1024, 2).front().x);
}

}  // namespace
}  // namespace hostless::test
