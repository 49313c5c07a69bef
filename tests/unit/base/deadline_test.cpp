#include "hostless/base/deadline.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace hostless {
namespace {

class ScaleVariable {
 public:
  explicit ScaleVariable(char const* value) { setenv("HOSTLESS_DEADLINE_SCALE", value, 1); }
  ~ScaleVariable() { unsetenv("HOSTLESS_DEADLINE_SCALE"); }
  ScaleVariable(ScaleVariable const&) = delete;
  ScaleVariable& operator=(ScaleVariable const&) = delete;
};

TEST(Deadline, PassesWhenItsTimeIsOver) {
  EXPECT_FALSE(Deadline::after(3600).passed());
  EXPECT_TRUE(Deadline::after(0).passed());
  EXPECT_TRUE(Deadline::after(-1).passed());
  Deadline const soon = Deadline::after(0.01);
  std::this_thread::sleep_for(std::chrono::milliseconds(11));
  EXPECT_TRUE(soon.passed());
}

TEST(WaitLimits, DefaultsAreTheDocumentedOnes) {
  unsetenv("HOSTLESS_DEADLINE_SCALE");
  WaitLimits const limits = WaitLimits::from_environment();
  EXPECT_EQ(limits.first_s, 60.0);
  EXPECT_EQ(limits.later_s, 10.0);
}

TEST(WaitLimits, ScaleMultipliesBoth) {
  ScaleVariable const scale("0.25");
  WaitLimits const limits = WaitLimits::from_environment();
  EXPECT_EQ(limits.first_s, 15.0);
  EXPECT_EQ(limits.later_s, 2.5);
}

// A scale that would switch the deadlines off, or that is no number, must not: a wait without end is a hang.
TEST(WaitLimits, NonsenseLeavesTheDefaults) {
  for (char const* text : {"", "fast", "2x", "0", "-1", "nan", "inf", "1e308", "1000001"}) {
    ScaleVariable const scale(text);
    WaitLimits const limits = WaitLimits::from_environment();
    EXPECT_EQ(limits.first_s, 60.0) << text;
    EXPECT_EQ(limits.later_s, 10.0) << text;
  }
}

}  // namespace
}  // namespace hostless
