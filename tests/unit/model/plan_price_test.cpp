#include "hostless/model/plan_price.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "hostless/base/error.hpp"
#include "hostless/model/price.hpp"

namespace hostless {
namespace {

constexpr double never_ends = std::numeric_limits<double>::infinity();

// Two sockets of two cores and one GPU each; round numbers, so that prices can be added up by hand.
MachineModel small_machine() {
  MachineModel machine;
  machine.name = "small";
  machine.node = {2, 2, 1, 1, 1, "made up"};
  auto const messages = [&](MessageSpan span, MemoryKind memory, Line line, Line behind, double queue) {
    machine.costs.messages.push_back({span,
                                      memory,
                                      {{Protocol::eager, Transfer::buffered, never_ends, line}},
                                      {{never_ends, behind}},
                                      queue,
                                      "here"});
  };
  messages(MessageSpan::on_socket, MemoryKind::host, {1e-6, 1e-9}, {0.5e-6, 1e-9}, 0);
  messages(MessageSpan::on_node, MemoryKind::host, {2e-6, 2e-9}, {1e-6, 2e-9}, 0);
  messages(MessageSpan::off_node, MemoryKind::host, {10e-6, 4e-9}, {3e-6, 4e-9}, 0.1e-6);
  messages(MessageSpan::off_node, MemoryKind::gpu, {30e-6, 1e-9}, {20e-6, 1e-9}, 0);
  machine.costs.injection.push_back({MemoryKind::host, {{never_ends, false, 3e-9}}, never_ends, "card"});
  machine.costs.copies.push_back({CopyDirection::device_to_host, 1, {5e-6, 1e-9}, "copy"});
  machine.costs.copies.push_back({CopyDirection::host_to_device, 1, {7e-6, 2e-9}, "copy"});
  machine.sources["here"] = "numbers of a test";
  return machine;
}

ExchangeCounts counts_of(int ranks, int per_node, std::vector<CountedStage> stages) {
  std::vector<std::int64_t> const none(static_cast<std::size_t>(ranks), 0);
  return {Route::direct, NodeMap::blocks(ranks, per_node), none, none, std::move(stages)};
}

double seconds(ExchangeCounts const& counts) {
  return price(small_machine(), counts, DataPath::host, 8).seconds;
}

TEST(PlanPrice, OneMessageBySpan) {
  EXPECT_NEAR(seconds(counts_of(8, 4, {{{}, {{0, 1, 100}}}})), 1e-6 + 800e-9, 1e-15) << "cores 0 and 1";
  EXPECT_NEAR(seconds(counts_of(8, 4, {{{}, {{1, 2, 100}}}})), 2e-6 + 1600e-9, 1e-15) << "two sockets";
  EXPECT_NEAR(seconds(counts_of(8, 4, {{{}, {{1, 4, 100}}}})), 10e-6 + 3200e-9, 1e-15);
  EXPECT_EQ(seconds(counts_of(8, 4, {{{}, {}}})), 0);
}

// Rank 0 sends 800 bytes to its socket, 800 over it and twice 1,600 to another node: the first one off the node
// costs 7 us more than it would behind others, which is the most. Its node injects 3,200 bytes: 9.6 us, less
// than its own time. Rank 4 receives two messages and searches once.
TEST(PlanPrice, MessagesOfARankAddUp) {
  ExchangePrice const found =
      price(small_machine(), counts_of(8, 4, {{{}, {{0, 1, 100}, {0, 2, 100}, {0, 4, 200}, {0, 4, 200}}}}),
            DataPath::host, 8);
  EXPECT_NEAR(found.terms.messages[0], 0.5e-6 + 0.8e-6, 1e-15);
  EXPECT_NEAR(found.terms.messages[1], 1e-6 + 1.6e-6, 1e-15);
  EXPECT_NEAR(found.terms.messages[2], 2 * (3e-6 + 6.4e-6) + 7e-6, 1e-15);
  EXPECT_EQ(found.terms.queue, 0) << "the sender's time is longer than the receivers'";
  EXPECT_NEAR(found.seconds, 29.7e-6, 1e-14);
  EXPECT_NEAR(found.ready[0], 29.7e-6, 1e-14);
  EXPECT_NEAR(found.ready[4], 29.7e-6, 1e-14) << "has all when its sender has sent all";
  EXPECT_EQ(found.ready[3], 0);
  EXPECT_EQ(found.last, 0);
  EXPECT_EQ(found.total[2].messages, 2);
  EXPECT_EQ(found.most[2].bytes, 3200);
  EXPECT_EQ(found.node_bytes, 3200);
  EXPECT_EQ(found.sources, (std::vector<std::string>{"numbers of a test", "card"}));
}

// Four ranks of a node send 8,000 bytes each: 42 us by themselves, 96 us through the card.
TEST(PlanPrice, TheCardOfANodeBindsAllItsRanks) {
  ExchangePrice const found = price(
      small_machine(), counts_of(8, 4, {{{}, {{0, 4, 1000}, {1, 5, 1000}, {2, 6, 1000}, {3, 7, 1000}}}}),
      DataPath::host, 8);
  EXPECT_NEAR(found.seconds, 96e-6, 1e-14);
  EXPECT_NEAR(found.terms.messages[2], 42e-6, 1e-14);
  EXPECT_NEAR(found.terms.injection, 54e-6, 1e-14);
  // Into one node from four: its card takes as long.
  EXPECT_NEAR(seconds(counts_of(5, 1, {{{}, {{1, 0, 1000}, {2, 0, 1000}, {3, 0, 1000}, {4, 0, 1000}}}})),
              10e-6 + 3 * 3e-6 + 4 * 32e-6 + 6 * 0.1e-6, 1e-14);
}

// Rank 0 gathers from rank 1 and rank 2 (the longer one, over the socket), then sends on; rank 4 hands on.
TEST(PlanPrice, StepsFollowEachOther) {
  std::vector<CountedStage> const stages{
      {{}, {{5, 6, 100}}}, {{}, {{1, 0, 100}, {2, 0, 100}}}, {{1}, {{0, 4, 300}}}, {{2}, {{4, 5, 100}}}};
  ExchangePrice const found = price(small_machine(), counts_of(8, 4, stages), DataPath::host, 8);
  double const gather = (0.5e-6 + 0.8e-6) + (1e-6 + 1.6e-6) + 1e-6;
  EXPECT_NEAR(found.seconds, gather + 10e-6 + 9.6e-6 + 1.8e-6, 1e-14);
  EXPECT_EQ(found.path, (std::vector<Rank>{0, 0, 4}));
  EXPECT_NEAR(found.ready[6], 3.6e-6, 1e-15) << "beside the gathering";
  EXPECT_NEAR(found.terms.sum(), found.seconds, 1e-18);
}

// A rank that is late makes those late that it sends to: 5 waits for 0, which received first.
TEST(PlanPrice, WhoSendsLateIsWaitedFor) {
  ExchangePrice const found =
      price(small_machine(), counts_of(8, 4, {{{}, {{4, 0, 5000}}}, {{0}, {{0, 5, 1}, {6, 7, 1}}}}),
            DataPath::host, 8);
  EXPECT_NEAR(found.ready[0], 10e-6 + 160e-6 + 10e-6 + 32e-9, 1e-14);
  EXPECT_NEAR(found.ready[5], found.ready[0], 1e-14);
  EXPECT_NEAR(found.ready[7], 1e-6 + 8e-9, 1e-15);
}

TEST(PlanPrice, StagedCopiesOutAndBack) {
  ExchangeCounts counts = counts_of(4, 2, {{{}, {{0, 2, 100}}}});
  counts.leaving[0] = 100;
  counts.ghosts[2] = 100;
  ExchangePrice const staged = price(small_machine(), counts, DataPath::staged, 8);
  EXPECT_NEAR(staged.terms.copies, 5e-6 + 0.8e-6 + 7e-6 + 1.6e-6, 1e-15);
  EXPECT_NEAR(staged.seconds, 14.4e-6 + 13.2e-6, 1e-15);
  ExchangePrice const device = price(small_machine(), counts, DataPath::device, 8);
  EXPECT_NEAR(device.seconds, 30e-6 + 0.8e-6, 1e-15);
  EXPECT_NE(std::find(device.notes.begin(), device.notes.end(),
                      "no injection limit of gpu memory is known: ranks do not slow each other"),
            device.notes.end());
}

// Of messages that are all alike both prices say the same, on a machine with all that files can have.
TEST(PlanPrice, OfEqualMessagesIsThePriceOfAPattern) {
  MachineModel const lassen = load_machine("lassen");
  for (MemoryKind memory : all_memory_kinds)
    for (int ranks : {1, 2, 4})
      for (int messages : {1, 7, 40})
        for (double bytes : {8.0, 1024.0, 9000.0, 100000.0}) {
          CountedStage stage;
          for (int r = 0; r < ranks; ++r)
            for (int m = 0; m < messages; ++m) stage.messages.push_back({r, ranks + r, 1});
          bool const host = memory == MemoryKind::host;
          double const whole = price(lassen, counts_of(2 * ranks, ranks, {stage}),
                                     host ? DataPath::host : DataPath::device, bytes)
                                   .seconds;
          double const pattern =
              price(lassen, {MessageSpan::off_node, memory, bytes, messages, ranks}).seconds;
          EXPECT_NEAR(whole / pattern, 1, 1e-9) << ranks << " x " << messages << " x " << bytes;
        }
}

// What 004 (2.3) says of the strategies: many small messages to a node are worth gathering, few are not.
TEST(PlanPrice, GatheringPaysWhereMessagesAreMany) {
  MachineModel const lassen = load_machine("lassen");
  auto const all_to_all = [](int ranks, std::int64_t items) {
    std::vector<Pattern> patterns(static_cast<std::size_t>(ranks));
    for (Rank r = 0; r < ranks; ++r) {
      Pattern& p = patterns[static_cast<std::size_t>(r)];
      p.owned = items * ranks;
      p.first = {0};
      for (Rank t = 0; t < ranks; ++t)
        for (std::int64_t k = 0; t != r && k < items; ++k) {
          p.item.push_back(static_cast<std::int32_t>(t * items + k));
          p.receiver.push_back(t);
          p.first.push_back(std::ssize(p.receiver));
        }
    }
    return patterns;
  };
  auto const ways = [&](int nodes, std::int64_t items) {
    auto const patterns = all_to_all(4 * nodes, items);
    std::vector<ExchangeCounts> counts;
    for (Route route : {Route::direct, Route::two_step, Route::three_step})
      counts.push_back(count_exchange(route, patterns, NodeMap::blocks(4 * nodes, 4)));
    return price_ways(lassen, counts, MemoryKind::host, 8);
  };
  auto const many = ways(16, 1);
  EXPECT_NE(many[cheapest(many)].route, Route::direct);
  EXPECT_EQ(many[0].price->most[2].messages, 60);
  EXPECT_EQ(many[2].price->most[2].messages, 4);
  auto const two = ways(1, 1);
  EXPECT_EQ(two[cheapest(two)].route, Route::direct) << "of equal ones the first";
}

TEST(PlanPrice, FewMessagesDecideWherePricesDoNot) {
  auto const way = [](Route route, double seconds, std::int64_t between) {
    PricedWay made;
    made.route = route;
    made.price.emplace().seconds = seconds;
    made.price->total[static_cast<std::size_t>(MessageSpan::off_node)].messages = between;
    return made;
  };
  std::vector<PricedWay> ways = {way(Route::direct, 1.5, 1), way(Route::two_step, 1.0, 12),
                                 way(Route::three_step, 1.019, 6), way(Route::split, 1.015, 6),
                                 way(Route::leader, 1.021, 2)};
  EXPECT_EQ(ways[cheapest(ways)].route, Route::split);
  ways[3].price.reset();
  EXPECT_EQ(ways[cheapest(ways)].route, Route::three_step);
  ways[2].price->seconds = 1.03;
  EXPECT_EQ(ways[cheapest(ways)].route, Route::two_step);
  ways.clear();
  EXPECT_THROW(cheapest(ways), Error);
}

TEST(PlanPrice, NoDataIsSaid) {
  ExchangeCounts const counts = counts_of(4, 2, {{{}, {{0, 2, 1}}}});
  try {
    price(load_machine("lumi"), counts, DataPath::host, 8);
    FAIL();
  } catch (Error const& problem) {
    EXPECT_EQ(problem.exit_code(), 3);
    EXPECT_EQ(std::string(problem.what()).find("lumi: no data of off_node messages of host memory"), 0U)
        << problem.what();
  }
  MachineModel machine = small_machine();
  machine.costs.copies.clear();
  ExchangeCounts moved = counts;
  moved.leaving[0] = 1;
  auto const ways = price_ways(machine, {moved}, MemoryKind::gpu, 8);
  ASSERT_EQ(ways.size(), 2U);
  EXPECT_TRUE(ways[0].price);
  EXPECT_NE(ways[1].problem.find("no data of copies device_to_host"), std::string::npos) << ways[1].problem;
  EXPECT_EQ(cheapest(ways), 0U);
  EXPECT_THROW(cheapest(price_ways(load_machine("lumi"), {counts}, MemoryKind::gpu, 8)), Error);
  EXPECT_THROW(price(machine, counts, DataPath::host, -1), Error);
}

}  // namespace
}  // namespace hostless
