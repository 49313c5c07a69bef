// What duties of blocks do not honour is refused by its name, on every rank alike.
#include <gtest/gtest.h>

#include "exchange/kernel_duties.hpp"
#include "hostless/base/error.hpp"
#include "plan_cases.hpp"
#include "refused.hpp"

namespace hostless {
namespace {

using testing::at;

struct RefusedDuties : ::testing::Test {
  std::vector<ExchangePlan> plans =
      make_plans(Route::three_step, testing::figure().patterns(), NodeMap::blocks(8, 4),
                 {ReuseGuarantee::answer, Space::host, false});
  KernelShape shape;
  DutyOptions options;
  RefusedDuties() { shape.blocks = 2, shape.lands = true; }

  /// Every rank leaves with the same error.
  void expect(std::string const& part) {
    expect_refused_by_all(plans.size(), part, [&](Group& group) {
      kernel_duties(plans[at(group.rank())], group, shape, options);
    });
  }
};

TEST_F(RefusedDuties, NobodyUnlessSomethingIsWrong) {
  for (ExchangePlan const& plan : plans) EXPECT_EQ(duty_refusal(plan, shape, options), "");
}
TEST_F(RefusedDuties, ReductionsWithoutSums) {
  plans = make_plans(Route::direct, testing::figure().patterns(), NodeMap::blocks(8, 4));
  expect("reuse_guarantee: reduction, but no all-rank sum");
}
TEST_F(RefusedDuties, OneEpochWithSums) {
  plans = make_plans(Route::direct, testing::figure().patterns(), NodeMap::blocks(8, 4));
  options.has_sums = true;
  for (ExchangePlan& plan : plans) plan.buffers[0].epochs = 1;
  expect("buffers[0].epochs: 1");
}
TEST_F(RefusedDuties, MemoryOfOtherKinds) {
  plans[3].buffers[0].space = Space::pinned;
  expect("rank 3: buffers[0].space: pinned");
}
TEST_F(RefusedDuties, TriggersOfSeveralStages) {
  for (Stage& stage : plans[1].stages)
    for (Message& message : stage.out) message.trigger = 7;
  plans[1].stages[3].out.push_back(plans[1].stages[2].out.at(0));
  plans[1].stages[3].out.back().trigger = 7;
  expect("rank 1: stages[");
}
TEST_F(RefusedDuties, ItemsThatWordsDoNotCarry) {
  options.item_bytes = 12;
  expect("rank 0: item_bytes: 12, which is no multiple of the 8");
}
TEST_F(RefusedDuties, GhostsThatNobodyAnswersFor) {
  shape.lands = false;
  expect("rank 0: lands: false, but without sums");
}
TEST_F(RefusedDuties, NoBlocks) {
  shape.blocks = 0;
  expect("rank 0: blocks: 0");
}
TEST_F(RefusedDuties, BoundaryRowsOfOtherBlocks) {
  shape.boundary_rows = {1, 2, 3};
  expect("rank 0: boundary_rows: of 3 blocks, there are 2");
  shape.boundary_rows = {1, -2};
  expect("rank 0: boundary_rows[1]: -2 rows");
}
TEST_F(RefusedDuties, GhostsOfOtherBlocks) {
  shape.block_of_ghost.assign(3, 0);
  expect("block_of_ghost: of 3 ghosts, there are 0");
  shape.lands = false;
  options.has_sums = true;
  expect("block_of_ghost: given, but no ghosts land");
}
TEST_F(RefusedDuties, ItemsOfNoBlock) {
  shape.block_of_item = [](std::int32_t) { return 2; };
  expect("block_of_item: 2 for item 1 (the kernel has 2 blocks)");
}

}  // namespace
}  // namespace hostless
