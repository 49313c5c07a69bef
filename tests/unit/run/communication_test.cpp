// What the text that only communicates can know beforehand: sums and ghosts by hand, who looks at which
// ghost, and how ghosts come.
#include "run/gpu/communication.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace hostless::gpu {
namespace {

Layout layout_of(int slices, std::int64_t block_rows, int blocks, std::int32_t below, std::int32_t above,
                 std::int32_t farthest) {
  Layout layout;
  layout.tiling.block_rows = block_rows;
  layout.tiling.slices = slices;
  layout.tiles = (slices + slices_of_block - 1) / slices_of_block;
  layout.blocks = blocks;
  layout.turns = (layout.tiles + blocks - 1) / blocks;
  layout.ghosts_below = below;
  layout.ghosts_above = above;
  layout.farthest = farthest;
  return layout;
}

// Of every thread of every tile of every rank, one after the other.
TEST(Communication, SumsAreKnown) {
  for (std::vector<int> const& partials : {std::vector<int>{132}, {1, 7}, {132, 131, 9, 4}}) {
    for (std::int64_t step : {0, 1, 255, 256, 1'000'000}) {
      for (int k = 0; k < widest_sum; ++k) {
        double sum = 0;
        for (std::size_t rank = 0; rank < partials.size(); ++rank)
          for (int tile = 0; tile < partials[rank]; ++tile)
            for (int thread = 0; thread < block_threads; ++thread)
              sum += known_part(thread % 32, tile, static_cast<int>(rank)) * step_weight(k, step);
        EXPECT_EQ(sum,
                  known_parts(partials.data(), static_cast<int>(partials.size())) * step_weight(k, step));
      }
    }
  }
}

// The most words that barriers have, and the heaviest step: still whole numbers of a double.
TEST(Communication, SumsStayExact) {
  std::vector<int> const partials(most_ranks, most_tiles / most_ranks);
  double const most = known_parts(partials.data(), most_ranks) * step_weight(widest_sum - 1, 255);
  EXPECT_LT(most, 9007199254740992.0);
  int const alone = most_tiles;
  EXPECT_LT(known_parts(&alone, 1) * step_weight(widest_sum - 1, 255), 9007199254740992.0);
}

TEST(Communication, StaleSumsAndGhostsAreOthers) {
  for (std::int64_t step = 0; step < 600; ++step) {
    for (std::int64_t before = step - 4; before < step; ++before) {
      EXPECT_NE(step_weight(0, step), step_weight(0, before));
      for (double id : {0.0, 1.0, 4e9}) {
        EXPECT_NE(known_ghost(id, step), known_ghost(id, before));
        EXPECT_NE(known_ghost(id, step), known_ghost(id + 1, before));
        EXPECT_NE(known_ghost(id, before), known_ghost(id + 1, step));
      }
    }
  }
}

// Threads of the blocks that look, as the kernel has them.
std::vector<int> looks(Layout const& layout, int rounds) {
  std::int32_t const ghosts = layout.ghosts_below + layout.ghosts_above;
  std::vector<int> times(static_cast<std::size_t>(ghosts));
  for (int block = 0; block < layout.blocks; ++block) {
    GhostShare const share = ghost_share(layout, rounds, block);
    if (share.mine < 0) continue;
    for (int thread = 0; thread < block_threads; ++thread)
      for (std::int32_t ghost = share.mine * block_threads + thread; ghost < ghosts;
           ghost += share.readers * block_threads)
        ++times[static_cast<std::size_t>(ghost)];
  }
  return times;
}

TEST(Communication, EachGhostIsLookedAtOnce) {
  for (int blocks : {1, 3, 16}) {
    for (std::int32_t below : {0, 1, 700, 5000}) {
      for (std::int32_t above : {0, 1, 2000}) {
        if (below + above == 0) continue;
        for (int rounds : {1, 3}) {
          Layout const layout = layout_of(32, 40'000, blocks, below, above, 900);
          for (int times : looks(layout, rounds)) EXPECT_EQ(times, 1);
        }
      }
    }
  }
}

// Only they have made visible what other ranks have stored.
TEST(Communication, BlocksThatReadGhostsLook) {
  Layout const layout = layout_of(32, 32'000, 16, 1000, 0, 1500);  // 2000 leaves a block
  for (int block = 0; block < 16; ++block)
    EXPECT_EQ(ghost_share(layout, 1, block).mine >= 0, block == 0) << block;
  Layout const wider = layout_of(32, 32'000, 16, 1000, 10, 3000);
  std::set<int> readers;
  for (int block = 0; block < 16; ++block)
    if (ghost_share(wider, 1, block).mine >= 0) readers.insert(block);
  EXPECT_EQ(readers, (std::set<int>{0, 1, 14, 15}));
  for (int block = 0; block < 16; ++block) EXPECT_EQ(ghost_share(layout, 2, block).mine, block);
}

TEST(Communication, GhostsLieAroundTheRows) {
  Layout const layout = layout_of(4, 100, 2, 3, 2, 1);
  std::vector<std::int32_t> rows;
  for (std::int32_t ghost = 0; ghost < 5; ++ghost) rows.push_back(ghost_row(layout, ghost));
  EXPECT_EQ(rows, (std::vector<std::int32_t>{-3, -2, -1, 100, 101}));
}

TEST(Communication, GhostsComeAsTheyDoInSolves) {
  Layout layout = layout_of(4, 100, 2, 3, 2, 1);
  FlaggedWord* const some = reinterpret_cast<FlaggedWord*>(&layout);
  EXPECT_EQ(ghost_way({2, 2, true}, layout), GhostWay::before_sums);
  layout.fuses = true;
  EXPECT_EQ(ghost_way({2, 2, true}, layout), GhostWay::with_sum);
  layout.halo_source_flagged_words[0] = some;
  EXPECT_EQ(ghost_way({2, 2, true}, layout), GhostWay::as_flagged_words);
  EXPECT_EQ(ghost_way({3, 1, true}, layout), GhostWay::with_only_sum);
  EXPECT_EQ(ghost_way({3, 2, false}, layout), GhostWay::none);
}

}  // namespace
}  // namespace hostless::gpu
