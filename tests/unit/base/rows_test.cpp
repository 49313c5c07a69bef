#include "hostless/base/rows.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace hostless {
namespace {

TEST(Piece, CoversEverythingInOrderAndEvenly) {
  for (std::int64_t n : {0, 1, 7, 264, 1000}) {
    for (std::int64_t parts : {1, 2, 3, 7, 264}) {
      EXPECT_EQ(piece(0, parts, n), 0);
      EXPECT_EQ(piece(parts, parts, n), n);
      for (std::int64_t k = 0; k < parts; ++k) {
        std::int64_t const size = piece(k + 1, parts, n) - piece(k, parts, n);
        EXPECT_GE(size, n / parts);
        EXPECT_LE(size, (n + parts - 1) / parts);
      }
    }
  }
}

TEST(Piece, DoesNotOverflow) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  static_assert(piece(1000, 1000, most) == most);
  static_assert(piece(500, 1000, most - 1) == (most - 1) / 2);
}

TEST(ShareFirst, IsAlignedMonotonicAndComplete) {
  for (std::int64_t rows : {0, 1, 11, 12, 13, 100, 4884, 100000}) {
    for (int size : {1, 2, 3, 4, 7, 40}) {
      EXPECT_EQ(share_first(rows, size, 0), 0);
      EXPECT_EQ(share_first(rows, size, size), rows);
      for (int rank = 0; rank < size; ++rank) {
        std::int64_t const first = share_first(rows, size, rank), last = share_first(rows, size, rank + 1);
        EXPECT_LE(first, last);
        EXPECT_TRUE(first % row_alignment == 0 || first == rows) << rows << ' ' << size << ' ' << rank;
        EXPECT_LE(last - first, rows / size + 2 * row_alignment);
      }
    }
  }
}

TEST(ShareFirst, BlocksOfEverySupportedSizeStayWhole) {
  for (int block : {1, 2, 3, 4, 6}) EXPECT_EQ(row_alignment % block, 0) << block;
}

TEST(RowPanel, ClearLeavesAnEmptyPanel) {
  RowPanel panel;
  panel.offset = {0, 2};
  panel.column = {4, 5};
  panel.value = {1.0, 2.0};
  panel.clear();
  EXPECT_EQ(panel.offset, std::vector<std::int64_t>{0});
  EXPECT_TRUE(panel.column.empty());
  EXPECT_TRUE(panel.value.empty());
}

}  // namespace
}  // namespace hostless
