// What is said of amounts, of switches in the environment, and of wishes that come twice.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "base/bytes_text.hpp"
#include "base/child.hpp"
#include "base/repeated_wish.hpp"
#include "base/variable.hpp"
#include "hostless/base/environment.hpp"

namespace hostless {
namespace {

TEST(BytesText, HasThreeDigitsAndAUnitOfAThousand) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(999.6), "1 KB");
  EXPECT_EQ(bytes_text(1536), "1.54 KB");
  EXPECT_EQ(bytes_text(999'600), "1 MB");
  EXPECT_EQ(bytes_text(12'345'678), "12.3 MB");
  EXPECT_EQ(bytes_text(4.5e12), "4.5 TB");
  EXPECT_EQ(bytes_text(2e18), "2 EB");
}

TEST(Switch, IsOnOffOrNeither) {
  unsetenv("HOSTLESS_A_SWITCH");
  EXPECT_FALSE(is_one("HOSTLESS_A_SWITCH") || is_zero("HOSTLESS_A_SWITCH"));
  for (char const* const neither : {"", "2", "on", "00"}) {
    setenv("HOSTLESS_A_SWITCH", neither, 1);
    EXPECT_FALSE(is_one("HOSTLESS_A_SWITCH") || is_zero("HOSTLESS_A_SWITCH")) << neither;
  }
  setenv("HOSTLESS_A_SWITCH", "1", 1);
  EXPECT_TRUE(is_one("HOSTLESS_A_SWITCH") && !is_zero("HOSTLESS_A_SWITCH"));
  setenv("HOSTLESS_A_SWITCH", "0", 1);
  EXPECT_TRUE(is_zero("HOSTLESS_A_SWITCH") && !is_one("HOSTLESS_A_SWITCH"));
  unsetenv("HOSTLESS_A_SWITCH");
}

TEST(RepeatedWish, IsOneWithinASecond) {
  using Heard = RepeatedWish::Heard;
  constexpr std::int64_t second_ns = 1'000'000'000, begin = 7 * second_ns;
  RepeatedWish wish;
  EXPECT_EQ(wish.hear_at(begin), Heard::first);
  EXPECT_EQ(wish.hear_at(begin + 1), Heard::again);
  EXPECT_EQ(wish.hear_at(begin + second_ns), Heard::again) << "counted from the first";
  EXPECT_EQ(wish.hear_at(begin + second_ns + 1), Heard::another);
  EXPECT_EQ(wish.hear_at(begin + 2 * second_ns), Heard::again) << "counted from the other one";
}

TEST(RepeatedWish, GoesByTheClock) {
  RepeatedWish wish;
  auto const begin = std::chrono::steady_clock::now();
  EXPECT_EQ(wish.hear(), RepeatedWish::Heard::first);
  auto const heard = wish.hear();
  if (std::chrono::steady_clock::now() - begin < std::chrono::seconds(1)) {  // this process may stand still
    EXPECT_EQ(heard, RepeatedWish::Heard::again);
  }
}

// It was forked a moment ago and has no group of its own yet.
TEST(EndChild, EndsOneThatLeadsNoGroupYet) {
  pid_t const child = fork();
  if (child == 0) {
    sleep(60);
    _exit(0);
  }
  end_child(child, true);
  EXPECT_NE(kill(child, 0), 0) << "it is still there";
  EXPECT_EQ(errno, ESRCH);
}

std::string complaint(char const* name, char const* value) {
  setenv(name, value, 1);
  std::string all;
  for (std::string const& one : unknown_variables()) {
    if (one.find(name) != std::string::npos) all += one;
  }
  unsetenv(name);
  return all;
}

TEST(UnknownVariables, AreToldWithTheNearestName) {
  EXPECT_EQ(complaint("HOSTLESS_SIZECHECK", "0"),
            "HOSTLESS_SIZECHECK is no variable of hostless (it changes nothing). Did you mean "
            "'HOSTLESS_SIZE_CHECK'?");
  EXPECT_EQ(complaint("HOSTLESS_FAVOURITE_COLOUR", "red"),
            "HOSTLESS_FAVOURITE_COLOUR is no variable of hostless (it changes nothing). Drop it.");
  for (char const* const known : {"HOSTLESS_SIZE_CHECK", "HOSTLESS_ISA", "HOSTLESS_MPI", "HOSTLESS_GPU"})
    EXPECT_EQ(complaint(known, "1"), "") << known;
  EXPECT_EQ(complaint("HOSTLESS", "1"), "");
  EXPECT_EQ(complaint("HOSTLESS_EMPTY", ""), "") << "counts as not set";
}

}  // namespace
}  // namespace hostless
