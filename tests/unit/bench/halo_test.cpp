// Exchanges of plans that are made, of wrong transports too: what is told of ghosts must be noticed.
#include "bench/halo.hpp"

#include <gtest/gtest.h>

#include "plan_cases.hpp"
#include "wrong_transport.hpp"

namespace hostless::bench {
namespace {

using hostless::testing::Reads;

constexpr int ranks = 4;
Reads reads() { return hostless::testing::random_reads(ranks, 11, 60); }

Halo halo_of(Route route, Rank rank, PlanOptions const& options, bool turned = false) {
  Halo what;
  what.patterns = reads().patterns();
  if (turned) hostless::testing::turn_ghosts_round(what.patterns);
  what.made_with = options;
  what.plan = make_plan(route, what.patterns, hostless::testing::random_nodes(ranks, 5), rank, options);
  return what;
}

void expect_all_times(HaloTiming const& timing) {
  expect_times(timing.step, brief());
  expect_times(timing.sum_alone, brief());
  expect_times(timing.alone, brief());
}

class HaloRoutes : public ::testing::TestWithParam<Route> {
 protected:
  static HaloTiming timed(Transport& transport, Protocol const& protocol) {
    return halo(transport, halo_of(GetParam(), transport.group().rank(), {}), protocol);
  }
};
INSTANTIATE_TEST_SUITE_P(All, HaloRoutes, ::testing::ValuesIn(all_routes),
                         [](auto const& one) { return std::string(name(one.param)); });

TEST_P(HaloRoutes, AreTimedWithTheirSumTheSumAloneAndWithout) {
  run_with_threads_transport(ranks, [](Transport& transport) {
    HaloTiming const timing = timed(transport, brief());
    expect_all_times(timing);
    EXPECT_EQ(timing.alone_by, ReuseGuarantee::answer);
  });
}

TEST_P(HaloRoutes, ManyFieldsOfAnySizeTravelInBothLayouts) {
  for (bool const apart : {false, true})
    for (ReuseGuarantee const reuse :
         {ReuseGuarantee::reduction, ReuseGuarantee::answer, ReuseGuarantee::credit})
      run_with_threads_transport(ranks, [&](Transport& transport) {
        PlanOptions options;
        options.apart = apart;
        options.reuse_guarantee = reuse;
        Halo what = halo_of(GetParam(), transport.group().rank(), options, apart);
        what.fields = 3;
        what.item_bytes = 13;
        HaloTiming const timing = halo(transport, what, brief());
        expect_all_times(timing);
        EXPECT_EQ(timing.alone_by, reuse == ReuseGuarantee::reduction ? ReuseGuarantee::answer : reuse);
      });
}

TEST_P(HaloRoutes, GhostsAndSumsAreCompared) {
  for (Fault const fault : {Fault::other_message, Fault::late_message, Fault::other_middle})
    expect_error(ranks, ErrorCode::environment, "a ghost is not what its owner has", fault,
                 [](Transport& transport) { timed(transport, brief()); });
  expect_error(ranks, ErrorCode::environment, "a sum over ranks is", Fault::other_sum,
               [](Transport& transport) { timed(transport, brief()); });
}

TEST_P(HaloRoutes, SilenceEndsByTheDeadline) {
  Protocol protocol = brief();
  protocol.limits = {0.2, 0.2};
  expect_error(ranks, ErrorCode::peer_lost, "in an exchange", Fault::silence,
               [&](Transport& transport) { timed(transport, protocol); });
}

// The value of a neighbour's item instead of the own one: only whoever knows the owner notices.
TEST(HaloHomes, GhostsOfAnotherPatternAreNoticed) {
  expect_error(
      2, ErrorCode::environment, "is not that of item 1 of rank 0", Fault::none, [](Transport& transport) {
        Halo what;
        what.patterns = Reads({2, 1}).add(0, 0, {1}).patterns();
        what.plan = make_plan(Route::direct, what.patterns, NodeMap::blocks(2, 2), transport.group().rank());
        what.patterns = Reads({2, 1}).add(0, 1, {1}).patterns();
        halo(transport, what, brief());
      });
}

TEST(HaloHomes, AreThoseOfTheReadsInTheCallersOrder) {
  auto patterns = reads().patterns();
  for (bool const turned : {false, true}) {
    if (turned) hostless::testing::turn_ghosts_round(patterns);
    for (Rank rank = 0; rank < ranks; ++rank) {
      auto expected = reads().ghosts(rank);
      if (turned) std::reverse(expected.begin(), expected.end());
      std::vector<std::pair<Rank, std::int32_t>> found;
      for (GhostHome const home : homes_of_ghosts(patterns, rank)) found.emplace_back(home.rank, home.item);
      EXPECT_EQ(found, expected);
    }
  }
}

TEST(HaloHomes, PatternsOfTheFirstRankAreThoseOfAll) {
  run_with_threads_transport(ranks, [](Transport& transport) {
    auto all = reads().patterns();
    hostless::testing::turn_ghosts_round(all);
    std::vector<Pattern> mine;
    if (transport.group().rank() == 0) mine = all;
    share_patterns(transport.group(), mine);
    ASSERT_EQ(mine.size(), all.size());
    for (std::size_t r = 0; r < all.size(); ++r) {
      EXPECT_EQ(mine[r].owned, all[r].owned);
      EXPECT_EQ(mine[r].item, all[r].item);
      EXPECT_EQ(mine[r].first, all[r].first);
      EXPECT_EQ(mine[r].receiver, all[r].receiver);
      EXPECT_EQ(mine[r].position, all[r].position);
    }
  });
}

TEST(HaloHomes, WhatCannotBeIsRefused) {
  auto const refused = [](std::string const& words, std::function<void(Halo&)> const& spoil) {
    expect_error(ranks, ErrorCode::usage, words, Fault::none, [&](Transport& transport) {
      Halo what = halo_of(Route::direct, transport.group().rank(), {});
      spoil(what);
      halo(transport, what, brief());
    });
  };
  refused("0 fields", [](Halo& what) { what.fields = 0; });
  refused("items of 0 bytes", [](Halo& what) { what.item_bytes = 0; });
  refused("with patterns of 3, among 4", [](Halo& what) { what.patterns.pop_back(); });
  refused("it was made from others", [](Halo& what) { what.patterns = Reads({60, 60, 60, 60}).patterns(); });
}

}  // namespace
}  // namespace hostless::bench
