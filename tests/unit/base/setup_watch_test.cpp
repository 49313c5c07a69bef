#include "base/setup_watch.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/setup_line.hpp"
#include "base/thread_team.hpp"
#include "hostless/base/error.hpp"

namespace hostless {
namespace {

bool step_throws() {
  try {
    setup_step();
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), ErrorCode::aborted);
    return true;
  }
  return false;
}

TEST(SetupWatch, ThreadsWithoutOneAreLeftAlone) {
  EXPECT_EQ(setup_watch(), nullptr);
  setup_step(5);
  SetupStage const stage("reading", 9);
  EXPECT_EQ(setup_watch(), nullptr);
}

TEST(SetupWatch, SaysHowFarAStageIs) {
  SetupWatch watch;
  WatchedBy const watched(&watch);
  EXPECT_EQ(watch.look().what, nullptr);
  {
    SetupStage const stage("reading", 8);
    setup_step(3);
    EXPECT_EQ(watch.look().what, std::string("reading"));
    EXPECT_EQ(watch.look().done, 3);
    EXPECT_EQ(watch.look().all, 8);
    setup_step(30);
    EXPECT_EQ(watch.look().done, 8);  // never more than all
  }
  EXPECT_EQ(watch.look().what, nullptr);
  SetupStage const next("laying out", 4);
  EXPECT_EQ(watch.look().done, 0);
  EXPECT_EQ(setup_words(watch.look(), 2.0), "laying out   0 %   2 s");
}

TEST(SetupWatch, RanksOfOneProcessAddTheirWork) {
  SetupWatch watch;
  WatchedBy const watched(&watch);
  constexpr int ranks = 4;
  std::vector<int> seen(ranks);
  run_thread_team(
      ranks,
      [&](int rank) {
        SetupStage const stage("reading", 10);
        setup_step(5);
        seen[static_cast<std::size_t>(rank)] = setup_watch() == &watch ? 1 : 0;
        return true;
      },
      [] {});
  EXPECT_EQ(seen, std::vector<int>(ranks, 1));
  share_out(ranks, ranks,
            [&](int part) { seen[static_cast<std::size_t>(part)] = setup_watch() == &watch ? 2 : 0; });
  EXPECT_EQ(seen, std::vector<int>(ranks, 2));
  EXPECT_EQ(watch.look().what, nullptr);
  SetupStage const one("reading", 10), two("reading", 10);
  setup_step(5);
  EXPECT_EQ(watch.look().all, 20);
  EXPECT_EQ(setup_words(watch.look(), 12.3), "reading   25 %   12 s");
}

TEST(SetupWatch, EndsLoopsWhenAsked) {
  SetupWatch watch;
  {
    WatchedBy const watched(&watch);
    EXPECT_FALSE(step_throws());
    watch.stop();
    EXPECT_TRUE(step_throws());
    SetupWatch other;
    {
      WatchedBy const inner(&other);
      EXPECT_FALSE(step_throws());
    }
    EXPECT_TRUE(step_throws());
  }
  EXPECT_FALSE(step_throws());
}

TEST(SetupLine, OfUnknownLength) {
  EXPECT_EQ(setup_words({"partitioning by METIS", 7, 0}, 3.4), "partitioning by METIS   3 s");
}

}  // namespace
}  // namespace hostless
