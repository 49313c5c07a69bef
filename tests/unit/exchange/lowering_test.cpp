// Plans over memory, small enough to be written out by hand.
#include "exchange/lowering.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "hostless/base/error.hpp"
#include "hostless/plan/routes.hpp"
#include "plan_cases.hpp"

namespace hostless {
namespace {

using testing::Reads;

constexpr PlanOptions apart{ReuseGuarantee::answer, Space::host, true};

std::vector<std::byte> numbered(std::size_t bytes) {
  std::vector<std::byte> all(bytes);
  for (std::size_t k = 0; k < bytes; ++k) all[k] = static_cast<std::byte>(k + 1);
  return all;
}
std::vector<int> numbers(std::byte const* from, std::size_t bytes) {
  std::vector<int> all;
  for (std::size_t k = 0; k < bytes; ++k) all.push_back(static_cast<int>(from[k]));
  return all;
}

// Items 1 to 3 lie together: the message is the caller's memory, on both sides, and no byte is staged.
TEST(Lowering, AContiguousPieceOfOneFieldIsSentAndReceivedWhereItLies) {
  Reads const reads = Reads({5, 2}).add(0, 1, {1}).add(0, 2, {1}).add(0, 3, {1});
  auto const plans = make_plans(Route::direct, reads.patterns(), NodeMap::blocks(2, 2), apart);
  std::byte own[5 * 3], ghosts[3 * 3];
  Field const field = Field::apart(own, ghosts, 3);
  LoweredPlan const source = lower_plan(plans[0], {&field, 1});
  ASSERT_EQ(source.out.size(), 1u);
  EXPECT_EQ(source.out[0].from, own + 3);
  EXPECT_EQ(source.out[0].bytes, 9u);
  EXPECT_EQ(source.out[0].target, 1);
  EXPECT_TRUE(source.staging.empty());
  EXPECT_TRUE(source.stages[1].pack.empty());
  LoweredPlan const target = lower_plan(plans[1], {&field, 1});
  ASSERT_EQ(target.in.size(), 1u);
  EXPECT_EQ(target.in[0].to, ghosts);
  EXPECT_EQ(target.in[0].bytes, 9u);
  EXPECT_TRUE(target.stages[1].unpack.empty());
  // The credit that the message needs, for nothing comes back: it has no bytes and no memory.
  ASSERT_EQ(source.in.size(), 1u);
  EXPECT_EQ(source.in[0].bytes, 0u);
  EXPECT_EQ(source.in[0].to, nullptr);
}

// A row of staging memory is one item of every field: 2 bytes of the first, 1 of the second.
TEST(Lowering, FieldsTravelSideBySideInOneMessage) {
  Reads const reads = Reads({4, 1}).add(0, 1, {1}).add(0, 2, {1});
  auto const plans = make_plans(Route::direct, reads.patterns(), NodeMap::blocks(2, 2), apart);
  auto const own = numbered(12);  // [8: two bytes an item | 4: one byte an item]
  std::vector<std::byte> ghosts(6);
  Field const fields[] = {Field::apart(own.data(), ghosts.data(), 2),
                          Field::apart(own.data() + 8, ghosts.data() + 4, 1)};
  LoweredPlan const source = lower_plan(plans[0], fields);
  ASSERT_EQ(source.out.size(), 1u);
  EXPECT_EQ(source.out[0].bytes, 6u);
  ASSERT_EQ(source.stages[1].pack.size(), 2u);
  for (CopyStep const& step : source.stages[1].pack) run(step);
  EXPECT_EQ(numbers(source.out[0].from, 6), (std::vector<int>{3, 4, 10, 5, 6, 11}));
  LoweredPlan const target = lower_plan(plans[1], fields);
  ASSERT_EQ(target.stages[1].unpack.size(), 2u);
  std::copy_n(source.out[0].from, 6, target.in[0].to);
  for (CopyStep const& step : target.stages[1].unpack) run(step);
  EXPECT_EQ(numbers(ghosts.data(), 6), (std::vector<int>{3, 4, 5, 6, 10, 11}));
}

// Items 0, 2 and 3 are packed by a list of positions, of every size.
TEST(Lowering, ItemsThatDoNotLieTogetherArePackedByAList) {
  Reads const reads = Reads({4, 1}).add(0, 0, {1}).add(0, 2, {1}).add(0, 3, {1});
  auto const plans = make_plans(Route::direct, reads.patterns(), NodeMap::blocks(2, 2), apart);
  for (std::size_t bytes : {1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 33}) {
    auto const own = numbered(4 * bytes);
    Field const field = Field::apart(own.data(), nullptr, bytes);
    LoweredPlan const source = lower_plan(plans[0], {&field, 1});
    ASSERT_EQ(source.stages[1].pack.size(), 1u);
    CopyStep const& pack = source.stages[1].pack[0];
    EXPECT_EQ(std::vector<std::int32_t>(pack.from_index, pack.from_index + 3),
              (std::vector<std::int32_t>{0, 2, 3}));
    EXPECT_EQ(pack.to_index, nullptr);
    run(pack);
    auto expected = numbers(own.data(), bytes);
    auto const rest = numbers(own.data() + 2 * bytes, 2 * bytes);
    expected.insert(expected.end(), rest.begin(), rest.end());
    EXPECT_EQ(numbers(source.out[0].from, 3 * bytes), expected) << bytes;
  }
}

// Ghosts of lower ranks lie before the owned items, the others behind: a message across both is unpacked.
TEST(Lowering, OneArrayHasItsGhostsAroundTheOwnedItems) {
  Reads const reads = Reads({1, 2, 1}).add(0, 0, {1}).add(2, 0, {1}).add(1, 1, {0, 2});
  NodeMap nodes = NodeMap::blocks(3, 3);
  nodes.node = {0, 1, 0};  // both ghosts of rank 1 come in one message
  auto const plans = make_plans(Route::three_step, reads.patterns(), nodes, {ReuseGuarantee::reduction});
  auto around = numbered(4);
  Field const field = Field::around(around.data() + 1, 1);
  LoweredPlan const middle = lower_plan(plans[1], {&field, 1});
  ASSERT_EQ(middle.out.size(), 1u);
  EXPECT_EQ(middle.out[0].from, around.data() + 2);
  ASSERT_EQ(middle.in.size(), 1u);
  EXPECT_EQ(middle.in[0].bytes, 2u);
  middle.in[0].to[0] = std::byte{77};
  middle.in[0].to[1] = std::byte{88};
  for (LoweredStage const& stage : middle.stages)
    for (CopyStep const& step : stage.unpack) run(step);
  EXPECT_EQ(numbers(around.data(), 4), (std::vector<int>{77, 2, 3, 88}));
}

// The plan may name a range across the border; no memory does.
TEST(Lowering, AMessageAcrossTheBorderOfOneArrayIsPacked) {
  ExchangePlan plan =
      make_plan(Route::direct, Reads({1, 2, 1}).add(0, 0, {1}).add(2, 0, {1}).add(1, 1, {2}).patterns(),
                NodeMap::blocks(3, 3), 1, {ReuseGuarantee::answer});
  for (Message& m : plan.stages[1].out)
    if (m.items > 0) m.from_first = 1, m.items = 2;  // the last owned item and the first ghost
  auto around = numbered(4);
  Field const field = Field::around(around.data() + 1, 1);
  LoweredPlan const lowered = lower_plan(plan, {&field, 1});
  for (CopyStep const& step : lowered.stages[1].pack) run(step);
  for (Outgoing const& out : lowered.out) {
    if (out.bytes > 0) {
      EXPECT_EQ(numbers(out.from, 2), (std::vector<int>{3, 1}));
    }
  }
}

TEST(Lowering, BoxesAreTakenRowByRow) {
  ExchangePlan plan = make_plan(Route::direct, Reads({8}).add(0, 0, {0}).add(0, 4, {0}).patterns(),
                                NodeMap::blocks(1, 1), 0, apart);
  Pieces& from = plan.stages[1].pack[0].from;
  from.index.clear();
  from.first = 1, from.count = 1, from.rows = 2, from.stride = 4;
  auto const own = numbered(16);
  std::vector<std::byte> ghosts(4);
  Field const field = Field::apart(own.data(), ghosts.data(), 2);
  LoweredPlan const lowered = lower_plan(plan, {&field, 1});
  for (CopyStep const& step : lowered.stages[1].pack) run(step);
  EXPECT_EQ(numbers(ghosts.data(), 4), (std::vector<int>{3, 4, 11, 12}));
}

// Rank 0 sends to its socket, to its node and to another node: the last block rows first.
TEST(Lowering, TheFarthestMessageBlockRowsFirst) {
  NodeMap nodes{{0, 0, 0, 1}, {0, 0, 1, 0}, {-1, -1, -1, -1}};
  Reads const reads = Reads({1, 1, 1, 1}).add(0, 0, {1, 2, 3});
  ExchangePlan const plan = make_plan(Route::direct, reads.patterns(), nodes, 0, {ReuseGuarantee::reduction});
  double own = 1;
  Field const field = Field::around(&own, 8);
  LoweredPlan const lowered = lower_plan(plan, {&field, 1});
  std::vector<int> targets;
  for (int const index : lowered.stages[0].out)
    targets.push_back(lowered.out[static_cast<std::size_t>(index)].target);
  EXPECT_EQ(targets, (std::vector<int>{3, 2, 1}));
}

TEST(Lowering, StagesAreFoundByTheirIds) {
  ExchangePlan plan =
      make_plan(Route::two_step, testing::figure().patterns(), NodeMap::blocks(8, 4), 5, apart);
  for (Stage& stage : plan.stages) {
    stage.id = 10 * stage.id + 3;
    for (StageId& id : stage.after) id = 10 * id + 3;
  }
  std::vector<std::byte> memory(64);
  Field const field = Field::apart(memory.data(), memory.data() + 32, 4);
  LoweredPlan const lowered = lower_plan(plan, {&field, 1});
  EXPECT_EQ(lowered.position_of_stage[33], 3);
  EXPECT_EQ(lowered.position_of_stage[32], -1);
  EXPECT_EQ(lowered.stages[3].after, std::vector<int>{2});
}

}  // namespace
}  // namespace hostless
