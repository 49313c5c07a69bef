// Which pairs of slices a sweep works on while ghosts travel.
#include "solve/gpu/part_sweeps.hpp"

#include <gtest/gtest.h>

namespace hostless::gpu {
namespace {

TEST(PartSweeps, InteriorPairsComeFirst) {
  // Slices 0 and 1 are pair 0, 2 and 3 pair 1, and so on; the last pair has one slice.
  PartedPairs const parted = part_pairs({0, 5, 8}, 5);
  EXPECT_EQ(parted.pair, (std::vector<std::int32_t>{1, 3, 0, 2, 4}));
  EXPECT_EQ(parted.interior, 2);
}

TEST(PartSweeps, NothingOrEverythingReadsGhosts) {
  EXPECT_EQ(part_pairs({}, 3).interior, 3);
  PartedPairs const all = part_pairs({0, 1, 2, 3}, 2);
  EXPECT_EQ(all.interior, 0);
  EXPECT_EQ(all.pair, (std::vector<std::int32_t>{0, 1}));
}

TEST(PartSweeps, EnvironmentDecides) {
  EXPECT_EQ(parting_wanted(nullptr), Parting::where_it_pays);
  EXPECT_EQ(parting_wanted("0"), Parting::never);
  EXPECT_EQ(parting_wanted("1"), Parting::always);
  EXPECT_EQ(parting_wanted("yes"), Parting::where_it_pays);
}

}  // namespace
}  // namespace hostless::gpu
