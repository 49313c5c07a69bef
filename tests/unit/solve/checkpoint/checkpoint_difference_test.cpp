#include <gtest/gtest.h>

#include <cmath>

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

// M u of a library may differ by rounding where the processor does.
TEST(CheckpointDifference, OfAFunctionIsToldBeyondRounding) {
  CheckpointIdentity const file{.function_norm = 2, .function_part = 0.5};
  CheckpointIdentity mine = file;
  mine.function_part += 1e-7;
  mine.function_norm -= 1e-7;
  EXPECT_EQ(difference_of(file, mine), "");
  for (auto const change : {+[](CheckpointIdentity& one) { one.function_norm *= 1.00001; },
                            +[](CheckpointIdentity& one) { one.function_part = -one.function_part; },
                            +[](CheckpointIdentity& one) { one.function_part += 1e-4; },
                            +[](CheckpointIdentity& one) { one = {}; },
                            +[](CheckpointIdentity& one) { one.function_norm = std::nan(""); }}) {
    CheckpointIdentity other = file;
    change(other);
    EXPECT_EQ(difference_of(file, other), "another preconditioner function M");
    EXPECT_EQ(difference_of(other, file), "another preconditioner function M");
  }
}

}  // namespace
}  // namespace hostless
