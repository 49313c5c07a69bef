#include "hostless/model/step_price.hpp"

#include <gtest/gtest.h>

#include "hostless/base/error.hpp"

namespace hostless {
namespace {

// 1e12 bytes a second of a GPU, 1e11 of a node's cores; a launch takes 2 us.
MachineModel machine_of_steps(bool launches) {
  MachineModel machine;
  machine.name = "small";
  machine.node = {1, 4, 4, 1, 1, "made up"};
  machine.memory = {{MemoryKind::gpu, {1e12, 5e11, 2e12}, {}, "here"},
                    {MemoryKind::host, {1e11, 1e11, 1e11}, {}, "here"}};
  machine.sources["here"] = "numbers of a test";
  if (launches) {
    machine.triggers = TriggerCosts{};
    machine.triggers->kernel_launch = 2e-6;
    machine.triggers->source = "here";
  }
  return machine;
}

ExchangePrice taking(double seconds) {
  ExchangePrice exchange;
  exchange.seconds = seconds;
  return exchange;
}

TEST(StepPrice, PartsAddUpByHand) {
  StepShare const share{1e6, 0, 1e5, 16, 1};  // 16 us of cells, of which 14.4 wait for nothing
  ExchangePrice const exchange = taking(20e-6);
  StepPrice const p = price_step(machine_of_steps(false), share, MemoryKind::gpu, 4, &exchange);
  EXPECT_NEAR(p.cells, 16e-6, 1e-15);
  EXPECT_NEAR(p.halo, 5.6e-6, 1e-15);
  EXPECT_NEAR(p.seconds, 21.6e-6, 1e-15);
  EXPECT_NEAR(p.least, 8e-6 + (0.74 * 20e-6 - 7.2e-6), 1e-15);
  EXPECT_NEAR(p.most, 32e-6 + 0, 1e-15);  // slower cells hide all of the exchange
  EXPECT_EQ(p.notes, std::vector<std::string>{"no data of kernel launches: not counted"});
  EXPECT_NEAR(price_step(machine_of_steps(false), share, MemoryKind::host, 4, &exchange).cells, 640e-6,
              1e-12);
}

TEST(StepPrice, RoundsPayOneExchangeAndRepeatCells) {
  StepShare const share{1e6, 4e5, 1e5, 16, 4};
  ExchangePrice const exchange = taking(20e-6);
  StepPrice const p = price_step(machine_of_steps(false), share, MemoryKind::gpu, 4, &exchange);
  EXPECT_NEAR(p.repeated, 1.6e-6, 1e-15);
  EXPECT_NEAR(p.halo, 1.4e-6, 1e-15);
  EXPECT_NEAR(p.seconds, 16e-6 + 1.6e-6 + 1.4e-6, 1e-15);
}

TEST(StepPrice, ShortStepsWaitForLaunches) {
  StepShare const few{1e3, 0, 0, 16, 1};
  EXPECT_NEAR(price_step(machine_of_steps(true), few, MemoryKind::gpu, 1, nullptr).launches, 2e-6 - 16e-9,
              1e-15);
  ExchangePrice const exchange = taking(1e-6);
  EXPECT_NEAR(price_step(machine_of_steps(true), few, MemoryKind::gpu, 1, &exchange).launches, 8e-6 - 16e-9,
              1e-15);
}

// 8 x 6 cells on 2 x 2 ranks: boxes of 4 x 3, each with one neighbour along each axis.
TEST(StepPrice, SharesAreCounted) {
  BoxPartition const boxes{{{8, 1, 6}, {}}, {2, 1, 2}};
  StepShare const one = step_share(boxes, {1, 0, 1}, 1, 16);
  EXPECT_EQ(one.cells, 12);
  EXPECT_EQ(one.border, 12 - 3 * 2);
  EXPECT_EQ(one.repeated, 0);
  StepShare const three = step_share(boxes, {1, 0, 1}, 3, 16);
  EXPECT_EQ(three.repeated, (6 * 5 - 12) + (5 * 4 - 12));
  StepShare const alone = step_share({{{8, 1, 6}, {}}, {1, 1, 1}}, {1, 0, 1}, 3, 16);
  EXPECT_EQ(alone.border, 0);
  EXPECT_EQ(alone.repeated, 0);
}

TEST(StepPrice, WhatIsMissingOrWrongIsNamed) {
  MachineModel machine = machine_of_steps(false);
  EXPECT_THROW(price_step(machine, {0, 0, 0, 16, 1}, MemoryKind::gpu, 1, nullptr), Error);
  EXPECT_THROW(price_step(machine, {10, 0, 11, 16, 1}, MemoryKind::gpu, 1, nullptr), Error);
  EXPECT_THROW(price_step(machine, {10, 0, 1, 16, 0}, MemoryKind::gpu, 1, nullptr), Error);
  machine.memory.clear();
  try {
    price_step(machine, {10, 0, 1, 16, 1}, MemoryKind::gpu, 1, nullptr);
    FAIL();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_NE(std::string(error.what()).find("small: no data of the bandwidth of gpu memory"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace hostless
