#include "base/nearest.hpp"

#include <gtest/gtest.h>

namespace hostless {
namespace {

std::vector<std::string> const words = {"solve", "bench", "generate", "plan", "info", "doctor", "report"};

TEST(Nearest, OneSlip) {
  for (char const* written : {"slove", "solv", "sovle", "solvee", "dolve", "xsolve"})
    EXPECT_EQ(nearest(written, words), "solve") << written;
}

TEST(Nearest, TheBeginningOfAWord) {
  EXPECT_EQ(nearest("gen", words), "generate");
  EXPECT_EQ(nearest("doc", words), "doctor");
}

TEST(Nearest, OneSlipForEveryThreeLetters) {
  std::vector<std::string> const options = {"--preconditioner", "--partition"};
  EXPECT_EQ(nearest("--presconditioner", options), "--preconditioner");
  EXPECT_EQ(nearest("--precnditoner", options), "--preconditioner");
  EXPECT_EQ(nearest("--partiton", options), "--partition");
}

TEST(Nearest, NothingFarOff) {
  for (char const* written : {"", "s", "melt", "x", "quit", "help", "solve-everything-that-there-is"})
    EXPECT_EQ(nearest(written, words), "") << written;
  EXPECT_EQ(nearest(std::string(100'000, 's'), words), "");
  EXPECT_EQ(nearest("ab", {"x"}), "");  // all letters differ
}

TEST(Nearest, TheFewestSlips) {
  EXPECT_EQ(nearest("poisson8", {"poisson27", "poisson7"}), "poisson7");
  EXPECT_EQ(nearest("poissn27", {"poisson7", "poisson27"}), "poisson27");
}

TEST(Nearest, InAMessage) {
  EXPECT_EQ(did_you_mean("slove", words), " Did you mean 'solve'?");
  EXPECT_EQ(did_you_mean("melt", words), "");
}

}  // namespace
}  // namespace hostless
