#include <gtest/gtest.h>

#include <random>

#include "hostless/operate/block_statistics.hpp"

namespace hostless {
namespace {

/// Rows of a banded matrix of dense b x b blocks, of whose entries a share is dropped.
RowPanel blocks(std::int64_t rows, int b, int band, double dropped, std::int64_t first = 0,
                std::int64_t last = -1) {
  std::mt19937_64 random(17);
  std::uniform_real_distribution<double> uniform;
  RowPanel panel;
  panel.clear();
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t block = i / b - band; block <= i / b + band; ++block) {
      for (std::int64_t j = block * b; j < (block + 1) * b; ++j) {
        if (uniform(random) < dropped || j < 0 || j >= rows) continue;
        if (i < first || (last >= 0 && i >= last)) continue;
        panel.column.push_back(j);
        panel.value.push_back(1.0);
      }
    }
    if (i >= first && (last < 0 || i < last))
      panel.offset.push_back(static_cast<std::int64_t>(panel.column.size()));
  }
  return panel;
}

BlockStatistics of(RowPanel const& panel) {
  BlockStatistics statistics;
  statistics.add(panel);
  return statistics;
}

TEST(BlockStatistics, CountsOfOneSmallMatrix) {
  RowPanel panel;
  panel.offset = {0, 2, 3, 3, 4};
  panel.column = {0, 5, 1, 3};
  panel.value = {1, 1, 1, 1};
  BlockStatistics const s = of(panel);
  EXPECT_EQ(s.rows, 4);
  EXPECT_EQ(s.entries, 4);
  EXPECT_EQ(s.blocks,
            (std::array<std::int64_t, 4>{3, 3, 2, 1}));  // 2: (0,0) (0,2) (1,1); 3: (0,0) (0,1) (1,1); ...
}

TEST(BlockStatistics, FullBlocksAreFound) {
  // Far-apart blocks, so that no larger size pays.
  for (int b : {2, 3, 4, 6}) {
    RowPanel panel;
    panel.clear();
    for (std::int64_t i = 0; i < 1200; ++i) {
      for (std::int64_t block : {i / b * 7 % 97, 100 + i / b * 5 % 89, 200 + i / b * 3 % 83}) {
        for (std::int64_t c = 0; c < b; ++c) panel.column.push_back(24 * block + c);
      }
      panel.offset.push_back(static_cast<std::int64_t>(panel.column.size()));
    }
    BlockStatistics const s = of(panel);
    EXPECT_EQ(choose_block(s), b) << explain_block(s);
  }
}

TEST(BlockStatistics, ScalarProblemsStayScalar) {
  RowPanel panel;
  panel.clear();
  for (std::int64_t i = 0; i < 1200; ++i) {
    for (std::int64_t j : {i, i + 1000, i + 3000}) panel.column.push_back(j);
    panel.offset.push_back(static_cast<std::int64_t>(panel.column.size()));
  }
  BlockStatistics const s = of(panel);
  EXPECT_EQ(choose_block(s), 1) << explain_block(s);
  EXPECT_NE(explain_block(s).find("3x3 0.1 MB (25 % filled)"), std::string::npos) << explain_block(s);
}

TEST(BlockStatistics, PartlyFilledBlocksPayUntilTheirZerosCostMore) {
  EXPECT_EQ(choose_block(of(blocks(1200, 3, 4, 0.1))) % 3, 0);
  EXPECT_EQ(choose_block(of(blocks(1200, 3, 4, 0.5))), 1);
}

TEST(BlockStatistics, OnlySizesThatDivideTheRows) {
  BlockStatistics s = of(blocks(1200, 6, 1, 0.0));
  EXPECT_EQ(choose_block(s), 6);
  s.rows = 1201;
  EXPECT_EQ(choose_block(s), 1);
  EXPECT_NE(explain_block(s).find("does not divide 1201"), std::string::npos);
}

TEST(BlockStatistics, AGainOfFivePercentIsNeeded) {
  BlockStatistics s;
  s.rows = 0;
  s.entries = 1000;                        // CSR 12000 bytes
  s.blocks = {11400 / 36, 900, 900, 900};  // 2x2: 316 blocks of 36 bytes, 11376
  EXPECT_EQ(choose_block(s), 2);
  s.blocks[0] = 318;  // 11448: 4.6 %
  EXPECT_EQ(choose_block(s), 1);
}

TEST(BlockStatistics, PanelsAndRanksAddUp) {
  BlockStatistics const whole = of(blocks(1203, 3, 2, 0.2));
  BlockStatistics parts, other;
  parts.add(blocks(1203, 3, 2, 0.2, 0, 12));
  parts.add(blocks(1203, 3, 2, 0.2, 12, 600));
  other.add(blocks(1203, 3, 2, 0.2, 600, 1203));
  parts += other;
  EXPECT_EQ(parts.rows, whole.rows);
  EXPECT_EQ(parts.entries, whole.entries);
  EXPECT_EQ(parts.blocks, whole.blocks);
}

TEST(BlockStatistics, RowsThatStartAnywhereCountWholeBlocks) {
  RowPanel const whole = blocks(1200, 3, 3, 0.0);
  BlockStatistics cut;
  for (std::int64_t first : {0, 399, 798}) {
    std::int64_t const last = first == 798 ? 1200 : first + 399;
    cut.add(blocks(1200, 3, 3, 0.0, first, last), first);
  }
  BlockStatistics const all = of(whole);
  EXPECT_EQ(cut.blocks[1], all.blocks[1]);  // 3 divides all cuts
  EXPECT_GT(cut.blocks[0], all.blocks[0]);  // 2 does not: two block rows count twice
  EXPECT_LT(cut.blocks[0], all.blocks[0] + 30);
}

TEST(BlockStatistics, OnlySizesThatDivideTheCuts) {
  BlockStatistics const s = of(blocks(1200, 3, 4, 0.0));
  int const best = choose_block(s);
  ASSERT_EQ(best % 3, 0);
  EXPECT_EQ(choose_block(s, 3), 3) << explain_block(s, 3);
  EXPECT_EQ(cut_block(s, 3), 0);  // 6 would save less than 5 % against 3
  EXPECT_EQ(choose_block(s, 1), 1);
  EXPECT_EQ(cut_block(s, 1), best);
  EXPECT_EQ(cut_block(s, 12), 0);
  EXPECT_NE(explain_block(s, 3).find("2x2 is cut where ranks' rows start"), std::string::npos)
      << explain_block(s, 3);
  EXPECT_EQ(cut_block(of(blocks(1200, 1, 1, 0.0)), 1), 0);  // nothing is lost where nothing is there
}

}  // namespace
}  // namespace hostless
