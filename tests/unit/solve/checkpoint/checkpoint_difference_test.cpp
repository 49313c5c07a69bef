#include <gtest/gtest.h>

#include "solve/checkpoint.hpp"

namespace hostless {
namespace {

// b loses its part in the null space before it is compared: that is no other right-hand side of the caller's.
TEST(CheckpointDifference, OfTheNullSpaceIsNotToldAsThatOfTheRightHandSide) {
  CheckpointIdentity const file{.rhs = 1};
  CheckpointIdentity mine{.rhs = 2};
  EXPECT_EQ(difference_of(file, mine), "another right-hand side");
  mine.null_space = 1;
  EXPECT_EQ(difference_of(file, mine), "null space none (here constant)");
  EXPECT_EQ(difference_of(mine, file), "null space constant (here none)");
}

}  // namespace
}  // namespace hostless
