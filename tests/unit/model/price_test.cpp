#include "hostless/model/price.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hostless/base/error.hpp"

namespace hostless {
namespace {

constexpr double endless = std::numeric_limits<double>::infinity();

CostTables toy() {
  CostTables tables;
  tables.messages.push_back({MessageSpan::on_socket,
                             MemoryKind::host,
                             {{Protocol::short_message, Transfer::inlined, endless, {4e-7, 0}}},
                             {},
                             0,
                             "a"});
  tables.messages.push_back({MessageSpan::off_node,
                             MemoryKind::host,
                             {{Protocol::short_message, Transfer::inlined, 128, {1.4e-6, 0}},
                              {Protocol::eager, Transfer::buffered, 8192, {2e-6, 4e-10}},
                              {Protocol::rendezvous, Transfer::direct, endless, {7e-6, 8e-11}}},
                             {},
                             0,
                             "b"});
  tables.injection.push_back(
      {MemoryKind::host, {{65536, false, 4e-11}, {endless, true, 5e-11}}, endless, "c"});
  return tables;
}

NodeShape node() {
  NodeShape shape;
  shape.sockets = 2;
  shape.cores_per_socket = 20;
  return shape;
}

double seconds(CostTables const& tables, double bytes, int messages, int ranks) {
  return price(tables, node(), {MessageSpan::off_node, MemoryKind::host, bytes, messages, ranks}).seconds;
}

// Where another limit or protocol holds, a larger message may be priced lower: that is said.
TEST(Price, NotesWhereItFalls) {
  auto const notes = [](CostTables const& tables, double bytes, int ranks) {
    return price(tables, node(), {MessageSpan::off_node, MemoryKind::host, bytes, 1, ranks}).notes;
  };
  CostTables half = toy();
  half.injection[0].limits[1].seconds_per_byte = 4e-11;
  EXPECT_LT(seconds(half, 65537, 1, 40),
            0.6 * seconds(half, 65536, 1, 40));  // from 40 ranks at the limit to 20
  EXPECT_TRUE(notes(half, 65536, 40).empty());
  ASSERT_EQ(notes(half, 65537, 40).size(), 1U);
  EXPECT_EQ(notes(half, 65537, 40)[0].find("smaller messages are priced higher: 104.9 us at 65536 bytes"), 0U)
      << notes(half, 65537, 40)[0];
  EXPECT_TRUE(notes(half, 65537, 1).empty());
  EXPECT_TRUE(notes(half, 200000, 40).empty());
}

TEST(Price, OneMessageIsThePostalModel) {
  EXPECT_DOUBLE_EQ(seconds(toy(), 8, 1, 1), 1.4e-6);
  EXPECT_DOUBLE_EQ(seconds(toy(), 8192, 1, 1), 2e-6 + 8192 * 4e-10);
  EXPECT_DOUBLE_EQ(seconds(toy(), 1e6, 1, 1), 7e-6 + 1e6 * 8e-11);
}

TEST(Price, SharpInjectionIsTheMaxRateModel) {
  EXPECT_DOUBLE_EQ(seconds(toy(), 8192, 1, 4), 2e-6 + 8192 * 4e-10) << "the card is faster";
  EXPECT_DOUBLE_EQ(seconds(toy(), 65536, 1, 40), 40 * 65536 * 4e-11);
  EXPECT_DOUBLE_EQ(seconds(toy(), 1e6, 1, 20), 20 * 1e6 * 5e-11);
  EXPECT_DOUBLE_EQ(seconds(toy(), 1e6, 1, 40), 20 * 1e6 * 5e-11) << "the second socket has a card of its own";
}

TEST(Price, SoftInjectionIsBetweenTheMaximumAndTheSum) {
  CostTables tables = toy();
  tables.injection[0].sharpness = 2;
  double const ranks = 7e-6 + 16384 * 8e-11, all = 10 * 16384 * 4e-11, own = all / 10;
  EXPECT_NEAR(seconds(tables, 16384, 1, 10), std::sqrt(ranks * ranks + all * all - own * own), 1e-15);
  EXPECT_DOUBLE_EQ(seconds(tables, 16384, 1, 1), ranks);
}

TEST(Price, WhatFollowsIsDerivedFromTheTransfer) {
  double const flight = 1.4e-6 - 4e-7;
  EXPECT_NEAR(seconds(toy(), 8, 11, 1), 1.4e-6 + 10 * 2e-7, 1e-15) << "half of the time on a socket";
  double const eager = 2e-6 + 4096 * 4e-10, large = 7e-6 + 1e6 * 8e-11;
  EXPECT_NEAR(seconds(toy(), 4096, 5, 1), eager + 4 * eager / 2, 1e-15);
  EXPECT_NEAR(seconds(toy(), 1e6, 3, 1), large + 2 * (large - flight), 1e-12);
}

TEST(Price, MeasuredFollowersAndQueuesReplaceTheRule) {
  CostTables tables = toy();
  tables.messages[1].following = {{1024, {1e-6, 0}}, {endless, {3e-6, 1e-10}}};
  tables.messages[1].queue_search = 1e-8;
  EXPECT_NEAR(seconds(tables, 512, 41, 1), 2e-6 + 512 * 4e-10 + 40 * 1e-6 + 1e-8 * 41 * 40 / 2, 1e-15);
  EXPECT_NEAR(seconds(tables, 1e6, 2, 1), 7e-6 + 8e-5 + 3e-6 + 1e-4 + 1e-8, 1e-12);
}

TEST(Price, RisesWithEverything) {
  MachineModel const lassen = load_machine("lassen");
  for (MemoryKind memory : all_memory_kinds)
    for (int messages : {1, 2, 16})
      for (int ranks : {1, 2, 4})
        for (double bytes = 1; bytes < 1e9; bytes *= 4) {
          auto const at = [&](double b, int m, int r) {
            return price(lassen, {MessageSpan::off_node, memory, b, m, r}).seconds;
          };
          double const now = at(bytes, messages, ranks);
          EXPECT_GE(at(bytes, messages + 1, ranks), now);
          EXPECT_GE(at(bytes, messages, ranks + 1), now);
        }
}

TEST(Price, RefusesWhatItCannotKnow) {
  MachineModel const lumi = load_machine("lumi");
  try {
    price(lumi, {});
    FAIL();
  } catch (Error const& problem) {
    EXPECT_EQ(problem.exit_code(), 3);
    EXPECT_NE(std::string(problem.what()).find("lumi: no data of off_node messages of host memory"),
              std::string::npos);
  }
  EXPECT_THROW(seconds(toy(), -1, 1, 1), Error);
  EXPECT_THROW(seconds(toy(), 8, 0, 1), Error);
  EXPECT_THROW(seconds(toy(), 8, 1, 0), Error);
  EXPECT_THROW(seconds(toy(), endless, 1, 1), Error);
}

TEST(Price, SaysWhatWasNotMeasured) {
  MessagePrice const found = price(toy(), node(), {MessageSpan::off_node, MemoryKind::host, 8, 2, 41});
  ASSERT_EQ(found.notes.size(), 2U);
  EXPECT_NE(found.notes[0].find("were not measured"), std::string::npos);
  EXPECT_NE(found.notes[1].find("41 active ranks on nodes of 40 cores"), std::string::npos);
}

}  // namespace
}  // namespace hostless
