#include "hostless/operate/tiling.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace hostless {
namespace {

std::int64_t slots_of(std::int64_t block_rows) {
  return (block_rows + Tiling::accumulators - 1) / Tiling::accumulators;
}

TEST(Tiling, SlicesAreEvenSharesThatBeginAtWholeGroups) {
  for (int const slices : {1, 2, 3, 7, 132, 264}) {
    for (std::int64_t const in_slice : {0, 1, 31, 32, 63, 64, 65, 100, 255, 256, 257, 1000, 7943}) {
      for (std::int64_t const more : {0, 1, 5, slices - 1}) {
        std::int64_t const rows = in_slice * slices + more;
        if (more >= slices || rows == 0) continue;
        Tiling const t{.block_rows = rows, .slices = slices};
        SCOPED_TRACE(testing::Message() << rows << " block rows in " << slices);
        EXPECT_EQ(t.first(0), 0);
        EXPECT_EQ(t.first(slices), rows);
        std::int64_t const longest_even = in_slice + (more > 0 ? 1 : 0);
        for (int s = 0; s < slices; ++s) {
          std::int64_t const first = t.first(s), its = t.first(s + 1) - first;
          if (in_slice >= 64) {
            EXPECT_EQ(first % 32, 0);
            EXPECT_GT(its, in_slice - 32);
            EXPECT_LT(its, longest_even + 32);
          } else {
            EXPECT_EQ(first, rows * s / slices);
          }
          EXPECT_LE(slots_of(its), slots_of(longest_even)) << "more work than even shares";
          if (its == 0) continue;
          for (std::int64_t const row : {first, first + its / 2, first + its - 1})
            EXPECT_EQ(t.slice_of(row), s) << "block row " << row;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hostless
