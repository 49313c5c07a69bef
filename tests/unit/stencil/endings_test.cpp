// When ranks hear next whether somebody asks to stop.
#include "stencil/endings.hpp"

#include <gtest/gtest.h>

namespace hostless::test {
namespace {

TEST(Stretch, IsOfWholeExchanges) {
  EXPECT_EQ(Stretch(0, 8, 8).steps(), 8);
  EXPECT_EQ(Stretch(15, 8, 8).steps(), 8);
  EXPECT_EQ(Stretch(80'001, 8, 8).steps(), 80'000);
}

// Where halos are deep by far, or steps are slow: a pass, not all steps between two exchanges.
TEST(Stretch, IsOfPassesWhereExchangesAreFarApart) {
  Stretch stretch(2000, 1024, 8);
  EXPECT_EQ(stretch.steps(), 1024);
  stretch.took(1024, 1.024);
  EXPECT_EQ(stretch.steps(), 128);  // an eighth: not down to a tenth at once
  stretch.took(96, 0.192);
  EXPECT_EQ(stretch.steps(), 48);
  stretch.took(48, 48);
  EXPECT_EQ(stretch.steps(), 8);
}

TEST(Stretch, GrowsToATenthOfASecond) {
  Stretch stretch(8, 8, 8);
  constexpr double step_s = 1e-6;
  int turns = 0;
  for (; turns < 30 && static_cast<double>(stretch.steps()) * step_s < 0.099; ++turns)
    stretch.took(stretch.steps(), static_cast<double>(stretch.steps()) * step_s);
  EXPECT_LE(turns, 6);
  EXPECT_NEAR(static_cast<double>(stretch.steps()) * step_s, 0.1, 1e-4);
  stretch.took(stretch.steps(), 10);  // somebody else uses the machine
  EXPECT_NEAR(static_cast<double>(stretch.steps()) * step_s, 0.0125, 1e-4);
}

TEST(Stretch, DoesNotShrinkWithLooksBeforeItsEnd) {
  Stretch stretch(80'000, 8, 8);
  stretch.took(10, 1e-5);
  EXPECT_EQ(stretch.steps(), 80'000);
  stretch.took(10, 1);  // but where so few take so long
  EXPECT_EQ(stretch.steps(), 8);
}

TEST(Stretch, EndsGrowing) {
  Stretch stretch(8, 8, 8);
  for (int k = 0; k < 100; ++k) stretch.took(stretch.steps(), 0);
  EXPECT_EQ(stretch.steps(), std::int64_t{1} << 40);
}

}  // namespace
}  // namespace hostless::test
