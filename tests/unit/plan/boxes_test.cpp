#include "hostless/plan/boxes.hpp"

#include <gtest/gtest.h>

#include <map>

#include "hostless/base/error.hpp"
#include "hostless/plan/checker.hpp"
#include "hostless/plan/routes.hpp"

namespace hostless {
namespace {

TEST(Boxes, CoverTheGridOnce) {
  BoxPartition partition{{{7, 5, 9}, {}}, {2, 1, 3}};
  std::map<std::array<std::int64_t, 3>, int> seen;
  for (Rank rank = 0; rank < partition.ranks(); ++rank) {
    Box const box = partition.box(rank);
    for (auto a = box.low[0]; a < box.high[0]; ++a)
      for (auto b = box.low[1]; b < box.high[1]; ++b)
        for (auto c = box.low[2]; c < box.high[2]; ++c) ++seen[{a, b, c}];
  }
  EXPECT_EQ(seen.size(), 7u * 5 * 9);
  for (auto const& [cell, times] : seen) EXPECT_EQ(times, 1);
  EXPECT_EQ(partition.thinnest(0), 3);
}

TEST(Boxes, LeastSurface) {
  EXPECT_EQ(least_surface({{100, 1, 100}, {}}, {1, 0, 1}, 4), (std::array<int, 3>{2, 1, 2}));
  EXPECT_EQ(least_surface({{100, 1, 10}, {}}, {1, 0, 1}, 4), (std::array<int, 3>{4, 1, 1}));
  EXPECT_EQ(least_surface({{64, 64, 64}, {}}, {1, 1, 1}, 8), (std::array<int, 3>{2, 2, 2}));
  EXPECT_EQ(least_surface({{64, 64, 64}, {}}, {1, 1, 1}, 2), (std::array<int, 3>{2, 1, 1}));  // long copies
  EXPECT_EQ(least_surface({{1, 1, 50}, {}}, {0, 0, 1}, 7), (std::array<int, 3>{1, 1, 7}));
  EXPECT_THROW(least_surface({{2, 1, 2}, {}}, {1, 0, 1}, 5), Error);
}

TEST(Boxes, NeighboursEndOrWrap) {
  BoxPartition partition{
      {{8, 1, 8}, {GridBoundary::dirichlet, GridBoundary::dirichlet, GridBoundary::periodic}}, {2, 1, 2}};
  EXPECT_EQ(partition.neighbour(0, {-1, 0, 0}), -1);
  EXPECT_EQ(partition.neighbour(0, {1, 0, 0}), 2);
  EXPECT_EQ(partition.neighbour(0, {0, 0, -1}), 1);
  EXPECT_EQ(partition.neighbour(0, {0, 0, 1}), 1);
  EXPECT_EQ(partition.neighbour(3, {-1, 0, 1}), 0);
}

// Every cell of every halo is the cell that its number says, whoever sends it.
TEST(Boxes, HalosFitTogether) {
  for (bool const faces : {false, true})
    for (auto const boundary : {GridBoundary::neumann, GridBoundary::periodic})
      for (auto const along : {std::array<int, 3>{1, 1, 1}, {2, 1, 2}, {3, 2, 1}, {1, 2, 3}}) {
        BoxPartition const partition{{{9, 7, 8}, {boundary, GridBoundary::periodic, boundary}}, along};
        std::array<std::int64_t, 3> const depth{2, 1, 2}, n = partition.grid.extent;
        auto const number = [&](std::int64_t a, std::int64_t b, std::int64_t c) {
          auto const wrapped = [](std::int64_t i, std::int64_t m) { return (i % m + m) % m; };
          return (wrapped(a, n[0]) * n[1] + wrapped(b, n[1])) * n[2] + wrapped(c, n[2]);
        };
        auto const cells_of = [&](std::vector<HaloStrip> const& strips, std::int64_t items) {
          std::vector<std::int64_t> cells(static_cast<std::size_t>(items), -1);
          for (HaloStrip const& strip : strips) {
            auto at = static_cast<std::size_t>(strip.first);
            for (auto a = strip.cells.low[0]; a < strip.cells.high[0]; ++a)
              for (auto b = strip.cells.low[1]; b < strip.cells.high[1]; ++b)
                for (auto c = strip.cells.low[2]; c < strip.cells.high[2]; ++c) cells[at++] = number(a, b, c);
          }
          return cells;
        };
        int const ranks = partition.ranks();
        auto const patterns = box_patterns(partition, depth, faces);
        std::vector<std::vector<std::int64_t>> sent, received(static_cast<std::size_t>(ranks));
        for (Rank r = 0; r < ranks; ++r) {
          BoxHalo const halo = box_halo(partition, r, depth, faces);
          sent.push_back(cells_of(halo.out, halo.items_out));
        }
        for (Rank source = 0; source < ranks; ++source) {  // ghosts by (source, item)
          Pattern const& pattern = patterns[static_cast<std::size_t>(source)];
          ASSERT_EQ(pattern.item.size(), sent[static_cast<std::size_t>(source)].size());
          for (std::size_t k = 0; k < pattern.item.size(); ++k)
            received[static_cast<std::size_t>(pattern.receiver[k])].push_back(
                sent[static_cast<std::size_t>(source)][k]);
        }
        for (Rank r = 0; r < ranks; ++r) {
          BoxHalo const halo = box_halo(partition, r, depth, faces);
          EXPECT_EQ(cells_of(halo.in, halo.items_in), received[static_cast<std::size_t>(r)])
              << "rank " << r << " of " << ranks;
        }
        PlanOptions options;
        options.apart = true, options.reuse_guarantee = ReuseGuarantee::answer;
        for (Route const route : {Route::direct, Route::two_step})
          EXPECT_EQ(check(make_plans(route, patterns, NodeMap::blocks(ranks, 2), options), patterns),
                    std::vector<std::string>{});
      }
}

TEST(Boxes, DeepHalosAreRefused) {
  BoxPartition const partition{{{9, 1, 9}, {}}, {3, 1, 1}};
  EXPECT_NO_THROW(box_halo(partition, 0, {3, 0, 9}, false));  // nothing is cut along the last axis
  try {
    (void)box_halo(partition, 0, {4, 0, 1}, false);
    FAIL();
  } catch (Error const& error) {
    EXPECT_NE(std::string(error.what()).find("4 cells along axis 0, where the thinnest of 3 boxes has 3"),
              std::string::npos)
        << error.what();
  }
}

TEST(Boxes, BoundariesHaveNames) {
  for (auto const one : {GridBoundary::dirichlet, GridBoundary::neumann, GridBoundary::periodic})
    EXPECT_EQ(grid_boundary_from(name(one)), one);
  EXPECT_THROW(grid_boundary_from("open"), Error);
}

}  // namespace
}  // namespace hostless
