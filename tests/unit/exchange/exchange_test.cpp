// Exchanges in which every number can be predicted: a ghost carries the name of its item and the epoch, sums
// are of integers. One wrong ghost names itself.
#include "hostless/exchange/exchange.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include "exchange_cases.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/plan/checker.hpp"
#include "hostless/plan/routes.hpp"
#include "refused.hpp"

namespace hostless {
namespace {

using testing::alone;
using testing::patient;
using testing::Reads;

double value_of(Rank source, std::int32_t item, int epoch) { return 1e6 * epoch + 1e3 * source + item; }

// Every rank exchanges `epochs` times, with an all-rank sum after each, as solvers do.
void exchange(Reads const& reads, NodeMap const& nodes, PlanOptions const& options, Route route, int epochs,
              unsigned delays) {
  auto const patterns = reads.patterns();
  int const ranks = nodes.ranks();
  auto const plans = make_plans(route, patterns, nodes, options);
  ASSERT_EQ(check(plans, patterns), std::vector<std::string>{});
  run_with_threads_transport(ranks, [&](Transport& transport) {
    Rank const me = transport.group().rank();
    ExchangePlan const& plan = plans[static_cast<std::size_t>(me)];
    auto const ghosts = reads.ghosts(me);
    ASSERT_EQ(static_cast<std::size_t>(plan.ghosts), ghosts.size());
    auto const owned = static_cast<std::size_t>(plan.owned);
    std::vector<double> around(owned + ghosts.size());
    double* const vector = around.data() + plan.ghosts_below;
    Exchange wire(transport, plan, vector, Reduction::ordered, patient);
    std::mt19937 random(delays + static_cast<unsigned>(me));
    for (int epoch = 1; epoch <= epochs; ++epoch) {
      std::fill(around.begin(), around.end(), -1.0);
      for (std::size_t i = 0; i < owned; ++i) vector[i] = value_of(me, static_cast<std::int32_t>(i), epoch);
      if (delays != 0 && random() % 8 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
      wire.start();
      ASSERT_TRUE(wire.wait());
      ASSERT_TRUE(wire.complete());
      for (std::size_t g = 0; g < ghosts.size(); ++g) {
        auto const [source, item] = ghosts[g];  // those of lower ranks lie before the owned ones, in order
        ASSERT_EQ(around[source < me ? g : owned + g], value_of(source, item, epoch))
            << "rank " << me << " ghost " << g << " is item " << item << " of rank " << source;
      }
      // Integers of every size: any order of additions gives the one answer.
      std::array<double, 4> totals{};
      std::array<double, 4> const mine{1.0, static_cast<double>(me), 1e3 * epoch * (me + 1),
                                       static_cast<double>(std::int64_t{1} << (me % 40))};
      wire.begin_sum(mine);
      ASSERT_TRUE(wire.finish_sum(totals));
      double const n = ranks;
      double powers = 0;
      for (int r = 0; r < ranks; ++r) powers += static_cast<double>(std::int64_t{1} << (r % 40));
      ASSERT_EQ(totals, (std::array<double, 4>{n, n * (n - 1) / 2, 1e3 * epoch * n * (n + 1) / 2, powers}));
    }
  });
}

class Routes : public ::testing::TestWithParam<Route> {};
INSTANTIATE_TEST_SUITE_P(All, Routes, ::testing::ValuesIn(all_routes),
                         [](auto const& one) { return std::string(name(one.param)); });

TEST_P(Routes, EveryGhostCarriesItsName) {
  for (int ranks : {1, 2, 3, 5, 8}) {
    for (unsigned seed = 1; seed <= 6; ++seed) {
      PlanOptions options;
      if (seed % 3 == 0) options.reuse_guarantee = ReuseGuarantee::credit;
      exchange(testing::random_reads(ranks, 100 * static_cast<unsigned>(ranks) + seed),
               testing::random_nodes(ranks, seed), options, GetParam(), 12, 0);
    }
  }
}

TEST_P(Routes, AHundredEpochsUnderDelays) {
  exchange(testing::random_reads(5, 7, 40), testing::random_nodes(5, 3), {}, GetParam(), 100, 11);
}

// Rank 0 sends and never receives, rank 2 receives and never sends: matrices cannot, patterns can.
TEST_P(Routes, AsymmetricPattern) {
  Reads reads({4, 4, 4, 4});
  reads.add(0, 1, {1, 2}).add(0, 3, {2, 3}).add(1, 0, {2}).add(3, 2, {2});
  exchange(reads, NodeMap::blocks(4, 2), {}, GetParam(), 30, 5);
}

TEST_P(Routes, RankWithoutNeighbours) {
  Reads reads({3, 0, 5, 2});
  reads.add(0, 2, {3}).add(3, 0, {0});
  exchange(reads, NodeMap::blocks(4, 2), {}, GetParam(), 30, 5);
}

TEST_P(Routes, NobodyNeedsAnything) {
  exchange(Reads({3, 3, 3}), NodeMap::blocks(3, 2), {}, GetParam(), 10, 0);
}

TEST_P(Routes, RankThatIsItsOwnNeighbour) {  // a periodic direction with one rank
  Reads one({4});
  one.add(0, 0, {0}).add(0, 3, {0});
  exchange(one, NodeMap::blocks(1, 1), {}, GetParam(), 10, 0);
  Reads three({4, 4, 4});
  three.add(0, 0, {0, 2}).add(1, 1, {1}).add(2, 3, {0, 1, 2});
  exchange(three, NodeMap::blocks(3, 2), {}, GetParam(), 30, 5);
}

// Rank 1 reads from both sides, and the other node sends it both in one message: they do not land together.
TEST_P(Routes, OneMessageOfLowerAndHigherRanks) {
  Reads reads({3, 3, 3});
  reads.add(0, 2, {1}).add(2, 0, {1}).add(1, 0, {0, 2}).add(1, 2, {2});
  NodeMap nodes = NodeMap::blocks(3, 3);
  nodes.node = {0, 1, 0};
  exchange(reads, nodes, {}, GetParam(), 10, 0);
}

TEST_P(Routes, FromWhereItLiesAndThroughPieces) {  // whole runs of items need no packing
  Reads reads({12, 12});
  for (std::int32_t i = 0; i < 12; ++i) reads.add(0, i, {1});
  for (std::int32_t i = 0; i < 12; i += 2) reads.add(1, i, {0});
  exchange(reads, NodeMap::blocks(2, 1), {}, GetParam(), 30, 5);
}

// The tree over ranks: ((1e16 + 1) + -1e16) would lose the 1, (1e16 + -1e16) + (1 + 0) does not.
TEST(Sums, FollowTheTreeOverRanks) {
  std::vector<double> const mine{1e16, -1e16, 1, 0, 3};
  for (int ranks : {2, 3, 4, 5}) {
    run_with_threads_transport(ranks, [&](Transport& transport) {
      ExchangePlan const plan = alone(ranks, transport.group().rank());
      double vector = 0, total = -1;
      Exchange wire(transport, plan, &vector, Reduction::ordered, patient);
      wire.begin_sum({&mine[static_cast<std::size_t>(transport.group().rank())], 1});
      ASSERT_TRUE(wire.finish_sum({&total, 1}));
      EXPECT_EQ(total, ranks == 2 ? 0.0 : ranks < 5 ? 1.0 : 4.0);
    });
  }
  run_with_threads_transport(4, [&](Transport& transport) {  // and the same values where the tree loses one
    std::vector<double> const lost{1e16, 1, -1e16, 0};
    ExchangePlan const plan = alone(4, transport.group().rank());
    double vector = 0, total = -1;
    Exchange wire(transport, plan, &vector, Reduction::ordered, patient);
    wire.begin_sum({&lost[static_cast<std::size_t>(transport.group().rank())], 1});
    ASSERT_TRUE(wire.finish_sum({&total, 1}));
    EXPECT_EQ(total, 0.0);
  });
}

TEST(Sums, CarryTheControlBits) {
  run_with_threads_transport(3, [&](Transport& transport) {
    int const me = transport.group().rank();
    ExchangePlan const plan = alone(3, me);
    double vector = 0, total = 0;
    Exchange wire(transport, plan, &vector, Reduction::ordered, patient);
    for (int turn = 0; turn < 4; ++turn) {
      if (turn == 2 && me == 1) wire.raise(control::stop);
      double const one = 1;
      wire.begin_sum({&one, 1});
      ASSERT_TRUE(wire.finish_sum({&total, 1}));
      EXPECT_EQ(total, 3.0);
      EXPECT_EQ(wire.flags(), turn < 2 ? 0u : control::stop);
    }
  });
}

TEST(Sums, FastFallsBackWhereTheTransportHasNone) {
  run_with_threads_transport(2, [&](Transport& transport) {
    ExchangePlan const plan = alone(2, transport.group().rank());
    double vector = 0;
    Exchange const wire(transport, plan, &vector, Reduction::fast, patient);
    EXPECT_EQ(wire.reduction(), Reduction::ordered);
  });
}

// None of them reads or writes a byte that is nobody's.
TEST(Sums, RefuseWhatWasNotBoundOrBegun) {
  auto const transport = single_transport();
  double vector = 0;
  std::array<double, 6> some{};
  Exchange wire(*transport, alone(1, 0), &vector, Reduction::ordered, patient);
  EXPECT_EQ(refused([&] {
              wire.begin_sum({some.data(), 5});
            }),
            "a sum of 5 values (at most 4 travel together). Split it.");
  EXPECT_NE(refused([&] { wire.finish_sum({some.data(), 1}); }).find("not begun"), std::string::npos);
  wire.begin_sum({some.data(), 2});
  EXPECT_NE(refused([&] {
              wire.begin_sum({some.data(), 2});
            }).find("begun before the last one was finished"),
            std::string::npos);
  EXPECT_NE(refused([&] {
              wire.finish_sum({some.data(), 3});
            }).find("3 totals of a sum of 2 values"),
            std::string::npos);
  EXPECT_TRUE(wire.finish_sum({some.data(), 2}));
  EXPECT_NE(refused([&] { wire.finish_sum({some.data(), 2}); }).find("not begun"), std::string::npos);
  Exchange without(*transport, make_plan(Route::direct, Reads({1}).patterns(), NodeMap::blocks(1, 1), 0),
                   {Field::around(&vector, 8)}, {patient, {}, {}});
  for (auto const& use : std::vector<std::function<void()>>{
           [&] {
             without.begin_sum({some.data(), 1});
           },
           [&] {
             without.finish_sum({some.data(), 1});
           },
           [&] { without.raise(control::stop); }, [&] { without.lower(); }, [&] { without.flags(); },
           [&] { without.reduction(); }, [&] { without.contributions(); }})
    EXPECT_NE(refused(use).find("bound without sums"), std::string::npos);
}

TEST(Exchange, RefusesAStageThatThePlanHasNot) {
  auto const transport = single_transport();
  double vector = 0;
  Exchange const wire(*transport, alone(1, 0), &vector, Reduction::ordered, patient);
  EXPECT_TRUE(wire.unpacked({0}));
  for (StageId const stage : {1, 1'000'000, -1})
    EXPECT_NE(refused([&] {
                wire.unpacked({0, stage});
              }).find(fmt::format("no stage {}", stage)),
              std::string::npos);
}

TEST(Start, IsRefusedWhileAnExchangeIsUnderWay) {
  Reads const reads = Reads({1, 1}).add(0, 0, {1});
  std::atomic<bool> tried{false};
  run_with_threads_transport(2, [&](Transport& transport) {
    Rank const me = transport.group().rank();
    ExchangePlan const plan = make_plan(Route::direct, reads.patterns(), NodeMap::blocks(2, 2), me,
                                        {ReuseGuarantee::answer, Space::host, true});
    double own = 7, ghost = 0;
    Exchange wire(transport, plan, {Field::apart(&own, &ghost, 8)}, {patient, {}, {}});
    if (me == 0) {
      wait_for([&] { return tried.load(); }, [] { return false; }, Deadline::after(240));
      wire.start();
    } else {
      wire.start();
      EXPECT_FALSE(wire.test());
      EXPECT_NE(refused([&] { wire.start(); }).find("started before the last one was complete"),
                std::string::npos);
      tried = true;
    }
    EXPECT_TRUE(wire.wait());
    EXPECT_EQ(ghost, me == 1 ? 7 : 0);
  });
}

// A transport that has not ended with a message when its endpoint goes, as MPI's may.
class KeepingTransport final : public Transport {
 public:
  Capabilities capabilities() const override { return inner_->capabilities(); }
  Group& group() override { return inner_->group(); }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override {
    kept = binding.memory;
    return inner_->bind(binding);
  }
  std::shared_ptr<void> kept;

 private:
  std::unique_ptr<Transport> inner_ = single_transport();
};

TEST(Exchange, MemoryLivesAsLongAsATransportMayWriteToIt) {
  Reads reads({4});
  auto const plans = make_plans(Route::direct, reads.patterns(), NodeMap::blocks(1, 1), {});
  KeepingTransport transport;
  auto vector = std::make_shared<std::vector<double>>(4);
  std::weak_ptr<void> const watched = vector;
  {
    Exchange const exchange(transport, plans[0], vector->data(), Reduction::ordered, patient, vector);
    vector.reset();
  }
  EXPECT_FALSE(watched.expired());
  transport.kept.reset();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace hostless
