// Which tiles a sweep works on while ghosts travel.
#include "solve/gpu/part_sweeps.hpp"

#include <gtest/gtest.h>

namespace hostless::gpu {
namespace {

TEST(PartSweeps, InteriorTilesComeFirst) {
  // Slices 0 and 1 are tile 0, 2 and 3 tile 1, and so on; the last tile has one slice.
  PartedTiles const parted = part_tiles({0, 5, 8}, 5);
  EXPECT_EQ(parted.tile, (std::vector<std::int32_t>{1, 3, 0, 2, 4}));
  EXPECT_EQ(parted.interior, 2);
}

TEST(PartSweeps, NothingOrEverythingReadsGhosts) {
  EXPECT_EQ(part_tiles({}, 3).interior, 3);
  PartedTiles const all = part_tiles({0, 1, 2, 3}, 2);
  EXPECT_EQ(all.interior, 0);
  EXPECT_EQ(all.tile, (std::vector<std::int32_t>{0, 1}));
}

TEST(PartSweeps, EnvironmentDecides) {
  EXPECT_EQ(parting_wanted(nullptr), Parting::where_it_pays);
  EXPECT_EQ(parting_wanted("0"), Parting::never);
  EXPECT_EQ(parting_wanted("1"), Parting::always);
  EXPECT_EQ(parting_wanted("yes"), Parting::where_it_pays);
}

}  // namespace
}  // namespace hostless::gpu
