#include "hostless/operate/sweep_plan.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "hostless/base/error.hpp"
#include "hostless/plan/routes.hpp"
#include "plan_cases.hpp"

namespace hostless {
namespace {

using testing::Reads;
using Needs = std::vector<std::vector<StageId>>;

TEST(SweepPlan, NeedsAreTheStagesThatWriteTheGhosts) {
  ExchangePlan const plan =
      make_plan(Route::two_step, testing::figure().patterns(), NodeMap::blocks(8, 4), 4);
  Tiling const tiling{4, 1, 3};
  // Ghosts of rank 4: item 1 of rank 0 (network, paired with itself), item 2 of rank 1 (redistributed).
  ASSERT_EQ(plan.ghosts, 2);
  EXPECT_EQ(make_sweep(plan, tiling).needs, (Needs{{1, 2}, {1, 2}, {1, 2}}));
  SweepPlan const sweep = make_sweep(plan, tiling, std::vector<std::int64_t>{0, 0, 2, 5},
                                     std::vector<std::int32_t>{1, 1, 0, 1, 0});
  EXPECT_EQ(sweep.needs, (Needs{{}, {2}, {1, 2}}));
  EXPECT_FALSE(sweep.awaits(0));
  EXPECT_TRUE(sweep.awaits(1));
  EXPECT_EQ(
      make_sweep(plan, tiling, std::vector<std::int64_t>{0, 1, 1, 1}, std::vector<std::int32_t>{0}).needs,
      (Needs{{1}, {}, {}}));
}

TEST(SweepPlan, OfARankThatReadsItself) {
  ExchangePlan const plan = make_plan(Route::three_step, Reads({4}).add(0, 0, {0}).add(0, 3, {0}).patterns(),
                                      NodeMap::blocks(1, 1), 0);
  EXPECT_EQ(make_sweep(plan, {4, 1, 1}).needs, (Needs{{0}}));
  EXPECT_EQ(make_sweep(plan, {4, 1, 1}, std::vector<std::int64_t>{0, 1}, std::vector<std::int32_t>{1}).needs,
            (Needs{{0}}));
}

TEST(SweepPlan, OfGhostsInAnArrayOfTheirOwn) {
  ExchangePlan const plan = make_plan(Route::two_step, testing::figure().patterns(), NodeMap::blocks(8, 4), 4,
                                      {ReuseGuarantee::answer, Space::host, true});
  EXPECT_EQ(make_sweep(plan, {4, 1, 1}).needs, (Needs{{2, 3}}));  // behind the stage of credits
}

void expect_refused(std::string const& part, std::function<void()> const& make) {
  try {
    make();
    ADD_FAILURE() << "accepted: " << part;
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(SweepPlan, RefusesWhatDoesNotFit) {
  ExchangePlan const plan = make_plan(Route::direct, testing::figure().patterns(), NodeMap::blocks(8, 4), 4);
  Tiling const two{4, 1, 2};
  std::vector<std::int64_t> const first{0, 1, 2};
  std::vector<std::int32_t> const ghost{0, 1};
  EXPECT_NO_THROW(make_sweep(plan, two, first, ghost));
  auto const with = [&](Tiling const& tiling, std::vector<std::int64_t> const& offsets,
                        std::vector<std::int32_t> const& read) {
    return [=] { make_sweep(plan, tiling, offsets, read); };
  };
  expect_refused("3 offsets for 3 slices", with({4, 1, 3}, first, ghost));
  expect_refused("2 offsets for 2 slices", with(two, {0, 2}, ghost));
  expect_refused("3 offsets for 2 slices and 2 ghosts read", with(two, {0, 3, 2}, ghost));
  expect_refused("ghost 2 is written by no stage", with(two, first, {0, 2}));
  expect_refused("ghost -1 is written by no stage", with(two, first, {-1, 0}));
  expect_refused("tiling.block: 0", with({4, 0, 2}, first, ghost));
  expect_refused("tiling.slices: 0", with({4, 1, 0}, first, ghost));
  expect_refused("tiling.slices: 1000000000", with({4, 1, 1000000000}, first, ghost));
  expect_refused("tiling.leaves: 5 leaves of 1 rows are not the 4 owned rows", with({5, 1, 2}, first, ghost));
  expect_refused("tiling.row_lanes: 6 is no power of two up to 32", with({4, 1, 2, 6}, first, ghost));
  ExchangePlan unwritten = plan;
  unwritten.stages[0].in.clear();
  expect_refused("ghost 0 is written by no stage", [&] { make_sweep(unwritten, two, first, ghost); });
}

// Two solves have equal bits when both the exchange and the pieces of the sweep are the same.
TEST(SweepPlan, FingerprintCoversTheTiling) {
  auto const patterns = testing::figure().patterns();
  ExchangePlan const plan = make_plan(Route::direct, patterns, NodeMap::blocks(8, 4), 4);
  ExchangePlan const other = make_plan(Route::two_step, patterns, NodeMap::blocks(8, 4), 4);
  std::set<std::uint64_t> seen;
  for (Tiling const& tiling : {Tiling{4, 1, 2}, {2, 2, 2}, {4, 1, 3}, {4, 1, 2, 4}})
    seen.insert(fingerprint(plan, make_sweep(plan, tiling)));
  seen.insert(fingerprint(other, make_sweep(other, {4, 1, 2})));
  EXPECT_EQ(seen.size(), 5u);
  for (Route const route : {Route::three_step, Route::leader}) {  // GPUs choose who sends, and no bit
    std::set<std::uint64_t> of_exchanges, of_solves;
    for (std::vector<int> const& devices : std::vector<std::vector<int>>{
             std::vector<int>(8, -1), std::vector<int>(8, 0), {0, 1, 0, 1, 0, 1, 0, 1}}) {
      NodeMap nodes = NodeMap::blocks(8, 4);
      nodes.device = devices;
      ExchangePlan const there = make_plan(route, patterns, nodes, 4);
      of_exchanges.insert(there.fingerprint);
      of_solves.insert(fingerprint(there, make_sweep(there, {4, 1, 2})));
    }
    EXPECT_EQ(of_exchanges.size(), 3u);
    EXPECT_EQ(of_solves.size(), 1u);
  }
  EXPECT_EQ(fingerprint(plan, make_sweep(plan, {4, 1, 2})),
            fingerprint(plan, make_sweep(plan, {4, 1, 2}, std::vector<std::int64_t>{0, 0, 0}, {})));
}

}  // namespace
}  // namespace hostless
