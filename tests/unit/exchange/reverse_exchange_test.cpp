// Ghosts added to their owners, small enough to be added up by hand.
#include "hostless/exchange/reverse_exchange.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "forwarding_endpoint.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/exchange/patterns.hpp"
#include "hostless/plan/checker.hpp"
#include "plan_cases.hpp"
#include "refused.hpp"

namespace hostless {
namespace {

using testing::Reads;

constexpr WaitLimits patient{60, 60};
constexpr auto const& routes = all_routes;

// Ranks 1 and 2 hold item 1 of rank 0, rank 2 its item 0; rank 0 holds item 0 of rank 2.
TEST(ReversePlan, ContributionsAreOrderedByRankAndGhost) {
  auto const patterns = Reads({2, 1, 1}).add(0, 0, {2}).add(0, 1, {1, 2}).add(2, 0, {0}).patterns();
  auto const back = transposed(patterns);
  ASSERT_EQ(back.size(), 3u);
  EXPECT_EQ(back[2].owned, 2);
  EXPECT_EQ(back[2].item, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(back[2].receiver, (std::vector<Rank>{0, 0}));
  EXPECT_EQ(back[0].receiver, std::vector<Rank>{2});
  ReversePlan const plan = make_reverse_plan(Route::direct, patterns, NodeMap::blocks(3, 3), 0);
  EXPECT_EQ(plan.owned, 2);
  EXPECT_EQ(plan.exchange.owned, 1);
  EXPECT_EQ(plan.exchange.ghosts, 3);
  EXPECT_EQ(plan.sum, (std::vector<std::int32_t>{1, 0, 1}));  // rank 1's, then rank 2's two
}

TEST(ReversePlan, FollowsTheOrderInWhichGhostsLie) {
  auto patterns = Reads({2, 1}).add(0, 0, {1}).add(0, 1, {1}).patterns();
  patterns[1].position = {1, 0};
  EXPECT_EQ(make_reverse_plan(Route::direct, patterns, NodeMap::blocks(2, 2), 0).sum,
            (std::vector<std::int32_t>{1, 0}));
  for (Route route : routes) {
    std::vector<ExchangePlan> plans;
    for (Rank r = 0; r < 2; ++r)
      plans.push_back(make_reverse_plan(route, patterns, NodeMap::blocks(2, 1), r).exchange);
    EXPECT_EQ(check(plans, transposed(patterns)), std::vector<std::string>{});
  }
  patterns[1].position = {1, 1};
  EXPECT_NE(refused([&] { transposed(patterns); }).find("patterns[1].position[1]: 1 is there twice"),
            std::string::npos);
}

// (1e16 + 1) + -1e16 loses the 1, another order does not: rank 0 before rank 1 before rank 2, by any route.
TEST(ReverseExchange, AddsInTheOrderOfRanks) {
  auto const patterns = Reads({0, 0, 0, 1}).add(3, 0, {0, 1, 2}).patterns();
  NodeMap nodes = NodeMap::blocks(4, 2);
  nodes.node = {0, 1, 0, 1};
  std::vector<double> const share{1e16, 1, -1e16};
  for (Route route : routes)
    run_with_threads_transport(4, [&](Transport& transport) {
      Rank const me = transport.group().rank();
      double ghost = me < 3 ? share[static_cast<std::size_t>(me)] : 0, own = 0;
      ReverseExchange add(transport, make_reverse_plan(route, patterns, nodes, me),
                          {{&ghost, &own, Element::f64}}, {patient, {}, {}});
      for (int turn = 0; turn < 3; ++turn) {
        own = 0;
        add.start();
        ASSERT_TRUE(add.wait());
        ASSERT_TRUE(add.test());  // and adds nothing again
        EXPECT_EQ(own, 0.0);
        own = -1e16;  // comes first
        add.start();
        ASSERT_TRUE(add.wait());
        EXPECT_EQ(own, me == 3 ? 1 - 1e16 : -1e16);
      }
    });
}

TEST(ReverseExchange, IntegersWrapAroundAndItemsHaveValues) {
  auto const patterns = Reads({2, 0}).add(0, 1, {1}).patterns();
  run_with_threads_transport(2, [&](Transport& transport) {
    Rank const me = transport.group().rank();
    std::vector<std::int32_t> small{1, 2, std::numeric_limits<std::int32_t>::max(), -5}, small_ghosts{1, 7};
    std::vector<std::int64_t> large{3, std::numeric_limits<std::int64_t>::min()}, large_ghosts{-1};
    std::vector<float> real{0.5F, 0.25F}, real_ghosts{0.125F};
    ReverseExchange add(transport, make_reverse_plan(Route::direct, patterns, NodeMap::blocks(2, 2), me),
                        {{small_ghosts.data(), small.data(), Element::i32, 2},
                         {large_ghosts.data(), large.data(), Element::i64},
                         {real_ghosts.data(), real.data(), Element::f32}},
                        {patient, {}, {}});
    add.start();
    ASSERT_TRUE(add.wait());
    if (me == 1) return;
    EXPECT_EQ(small, (std::vector<std::int32_t>{1, 2, std::numeric_limits<std::int32_t>::min(), 2}));
    EXPECT_EQ(large, (std::vector<std::int64_t>{3, std::numeric_limits<std::int64_t>::max()}));
    EXPECT_EQ(real, (std::vector<float>{0.5F, 0.375F}));
  });
}

TEST(ReverseExchange, RefusesWhatDoesNotFit) {
  auto const patterns = Reads({2, 1}).add(0, 1, {1}).add(1, 0, {0}).patterns();
  double ghosts[2] = {}, owned[4] = {};
  auto const bind = [&](SumField const& field, std::function<void(ReversePlan&)> const& change, Rank where) {
    return refused([&] {
      run_with_threads_transport(2, [&](Transport& transport) {
        Rank const me = transport.group().rank();
        ReversePlan plan = make_reverse_plan(Route::direct, patterns, NodeMap::blocks(2, 2), me);
        SumField const good{ghosts, owned, Element::f64, 1};
        if (me == where) change(plan);
        ReverseExchange const add(transport, plan, {me == where ? field : good}, {patient, {}, {}});
      });
    });
  };
  auto const nothing = [](ReversePlan&) {};
  EXPECT_EQ(bind({ghosts, owned, Element::f64, 1}, nothing, 1), "accepted");
  EXPECT_EQ(bind({ghosts, owned, Element::i64, 1}, nothing, 1)
                .find("ranks 0 and 1 add other elements: fields[0].element is f64 and i64"),
            0u);
  EXPECT_EQ(bind({ghosts, owned, Element::f64, 2}, nothing, 1)
                .find("ranks 0 and 1 add other elements: fields[0].values is 1 and 2"),
            0u);
  EXPECT_EQ(bind({ghosts, owned, static_cast<Element>(9), 1}, nothing, 1)
                .find("fields[0].element: 9 is no Element"),
            0u);
  EXPECT_EQ(bind({owned, owned, Element::f64, 1}, nothing, 1)
                .find("fields[0].owned and fields[0].ghosts share bytes"),
            0u);
  EXPECT_NE(bind({ghosts, owned, Element::f64, 0}, nothing, 1).find("fields[0].values: 0 an item"),
            std::string::npos);
  EXPECT_NE(
      bind({ghosts, nullptr, Element::f64, 1}, nothing, 0).find("fields[0].owned: no memory for 2 items"),
      std::string::npos);
  EXPECT_NE(
      bind({nullptr, owned, Element::f64, 1}, nothing, 0).find("fields[0].ghosts: no memory for 1 ghosts"),
      std::string::npos);
  EXPECT_NE(bind(
                {ghosts, owned, Element::f64, 1}, [](ReversePlan& p) { p.sum = {2}; }, 0)
                .find("sum[0]: 2 is not below the 2 owned items"),
            std::string::npos);
  EXPECT_NE(bind(
                {ghosts, owned, Element::f64, 1}, [](ReversePlan& p) { p.sum.clear(); }, 0)
                .find("sum: 0 items for 1 contributions"),
            std::string::npos);
}

// Bytes of a file, of a packed structure: numbers at any address.
TEST(ReverseExchange, AddsAtAnyAddress) {
  auto const patterns = Reads({2, 0}).add(0, 1, {1}).patterns();
  run_with_threads_transport(2, [&](Transport& transport) {
    Rank const me = transport.group().rank();
    alignas(8) std::byte memory[1 + 2 * 16 + 16] = {};
    std::byte* const owned = memory + 1;
    std::byte* const ghosts = owned + 32;
    std::array<double, 2> const share{0.5, 2.0};
    std::memcpy(ghosts, share.data(), sizeof share);
    ReverseExchange add(transport, make_reverse_plan(Route::direct, patterns, NodeMap::blocks(2, 2), me),
                        {{ghosts, owned, Element::f64, 2}}, {patient, {}, {}});
    for (int turn = 0; turn < 2; ++turn) {
      add.start();
      ASSERT_TRUE(add.wait());
    }
    std::array<double, 4> sums{};
    std::memcpy(sums.data(), owned, sizeof sums);
    EXPECT_EQ(sums, (me == 0 ? std::array<double, 4>{0, 0, 1, 4} : std::array<double, 4>{}));
  });
}

TEST(ReverseExchange, RefusesMoreBytesThanThereCanBe) {
  ReversePlan plan;
  plan.exchange.owned = plan.owned = std::int64_t{1} << 40;
  auto const transport = single_transport();
  double number = 0;
  EXPECT_EQ(refused([&] {
              ReverseExchange const add(*transport, plan, {{&number, &number, Element::f64, 1 << 28}},
                                        {patient, {}, {}});
            }).find("fields[0].values: 268435456, which for 1099511627776 items are more bytes"),
            0u);
}

TEST(ReverseExchange, RefusesSumsAndPlansThatRelyOnThem) {
  auto const patterns = Reads({1, 1}).add(0, 0, {1}).patterns();
  double ghost = 1, own = 1;
  auto const bind = [&](PlanOptions const& how, std::optional<Reduction> sums) {
    return refused([&] {
      run_with_threads_transport(2, [&](Transport& transport) {
        ReversePlan const plan =
            make_reverse_plan(Route::direct, patterns, NodeMap::blocks(2, 2), transport.group().rank(), how);
        ReverseExchange const add(transport, plan, {{&ghost, &own, Element::f64}}, {patient, {}, sums});
      });
    });
  };
  EXPECT_EQ(bind({ReuseGuarantee::credit}, {}), "accepted");
  EXPECT_NE(bind({ReuseGuarantee::reduction}, {}).find("reuse_guarantee: reduction, but no all-rank sum"),
            std::string::npos);
  EXPECT_NE(bind({ReuseGuarantee::answer}, Reduction::ordered).find("options.sums: set"), std::string::npos);
}

TEST(ReverseExchange, AddsNothingAfterALoss) {
  auto const patterns = Reads({1, 1}).add(0, 0, {1}).add(1, 0, {0}).patterns();
  run_with_threads_transport(2, [&](Transport& transport) {
    Rank const me = transport.group().rank();
    double ghost = 1, own = 5;
    ReverseExchange add(transport, make_reverse_plan(Route::direct, patterns, NodeMap::blocks(2, 2), me),
                        {{&ghost, &own, Element::f64}}, {{20, 20}, {}, {}});
    if (me == 0) {
      add.leave();
    } else {
      add.start();
      EXPECT_FALSE(add.wait());
    }
    EXPECT_TRUE(add.lost());
    add.start();
    EXPECT_FALSE(add.wait());
    EXPECT_EQ(own, 5);
  });
}

/// As the threads are, with messages that are there when they have been asked for so often.
class CountedTransport final : public Transport {
 public:
  CountedTransport(Transport& inner, int looks) : inner_(inner), looks_(looks) {}
  Capabilities capabilities() const override { return inner_.capabilities(); }
  Group& group() override { return inner_.group(); }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override {
    return std::make_unique<Counted>(inner_.bind(binding), looks_);
  }

 private:
  class Counted final : public test::ForwardingEndpoint {
   public:
    Counted(std::unique_ptr<Endpoint> inner, int looks)
        : ForwardingEndpoint(std::move(inner)), looks_(looks) {}
    void receive(int index, std::uint32_t epoch) override {
      ForwardingEndpoint::receive(index, epoch);
      looked_ = 0;
    }
    bool received(int index) override {
      if (++looked_ < looks_) return false;
      wait_for([&] { return ForwardingEndpoint::received(index); }, [] { return false; },
               Deadline::after(240));
      return true;
    }

   private:
    int looks_, looked_ = 0;
  };
  Transport& inner_;
  int looks_;
};

// A start looks whether the last exchange is over. What comes between two looks may not be lost: either the
// start is refused, or all that came before it has been added.
TEST(ReverseExchange, WhatComesDuringAStartIsAdded) {
  auto const patterns = Reads({1, 1}).add(0, 0, {1}).add(1, 0, {0}).patterns();
  for (int looks = 2; looks < 6; ++looks)
    run_with_threads_transport(2, [&](Transport& threads) {
      CountedTransport transport(threads, looks);
      Rank const me = transport.group().rank();
      double ghost = 1, own = 0;
      ReverseExchange add(transport, make_reverse_plan(Route::direct, patterns, NodeMap::blocks(2, 2), me),
                          {{&ghost, &own, Element::f64}}, {patient, {}, {}});
      add.start();
      bool const went_on = refused([&] { add.start(); }) == "accepted";
      ASSERT_TRUE(add.wait());
      EXPECT_EQ(own, went_on ? 2 : 1) << "with messages that are there at look " << looks;
      transport.group().barrier();
    });
}

using Numbers = std::vector<std::int64_t>;

std::string patterns_refused(std::vector<Numbers> const& owned, std::vector<Numbers> const& ghosts) {
  return refused([&] {
    run_on_threads(static_cast<int>(owned.size()), [&](Group& group) {
      auto const me = static_cast<std::size_t>(group.rank());
      std::string const text = refused([&] { patterns_of_ghosts(group, owned[me], ghosts[me]); });
      if (text != "accepted") throw Error(ErrorCode::usage, text);
      throw Error(ErrorCode::usage, "accepted on a rank");
    });
  });
}

TEST(Patterns, OfGlobalNumbers) {
  std::vector<Numbers> const owned{{40, 10}, {}, {7, 99}}, ghosts{{99, 7}, {10, 99}, {40}};
  run_on_threads(3, [&](Group& group) {
    auto const me = static_cast<std::size_t>(group.rank());
    auto const patterns = patterns_of_ghosts(group, owned[me], ghosts[me]);
    ASSERT_EQ(patterns.size(), 3u);
    EXPECT_EQ(patterns[0].owned, 2);
    EXPECT_EQ(patterns[0].item, (std::vector<std::int32_t>{0, 1}));
    EXPECT_EQ(patterns[0].first, (std::vector<std::int64_t>{0, 1, 2}));
    EXPECT_EQ(patterns[0].receiver, (std::vector<Rank>{2, 1}));
    EXPECT_EQ(patterns[0].position, (std::vector<std::int32_t>{1, 0}));  // item 0 of rank 2 is 7
    EXPECT_EQ(patterns[1].owned, 0);
    EXPECT_EQ(patterns[1].position, (std::vector<std::int32_t>{0, 1}));
    EXPECT_EQ(patterns[2].item, (std::vector<std::int32_t>{0, 1}));
    EXPECT_EQ(patterns[2].receiver, (std::vector<Rank>{0, 0, 1}));
  });
}

TEST(Patterns, ErrorsNameRankAndItemOnAllRanks) {
  struct {
    std::vector<Numbers> owned, ghosts;
    char const* text;
  } const all[] = {
      {{{1, 2}, {3}}, {{4}, {}}, "rank 0: ghosts[0] is item 4, which no rank owns"},
      {{{1, 2}, {2}}, {{}, {}}, "item 2 is owned by rank 0 and by rank 1"},
      {{{1, 2}, {5, 3, 5}}, {{}, {}}, "rank 1: owned[0] and owned[2] are both item 5"},
      {{{1, 2}, {3}}, {{}, {2, 1, 2}}, "rank 1: ghosts[0] and ghosts[2] are both item 2"},
      {{{1, -2}, {3}}, {{}, {}}, "rank 0: owned[1] is -2, which is no number of an item"},
      {{{1, 2}, {3}}, {{3, -1}, {}}, "rank 0: ghosts[1] is -1"},
  };
  for (auto const& one : all) {
    std::string const text = patterns_refused(one.owned, one.ghosts);
    EXPECT_EQ(text.find(one.text), 0u) << text;
  }
}

using Lists = std::vector<std::vector<std::int32_t>>;

TEST(Patterns, OfLists) {
  // Rank 0 sends its items 2 and 0 to rank 1, where they are ghosts 0 and 2; rank 1 its item 0 to itself.
  std::vector<Lists> const send{{{}, {2, 0}}, {{}, {0}}}, receive{{{}, {}}, {{0, 2}, {1}}};
  run_on_threads(2, [&](Group& group) {
    auto const me = static_cast<std::size_t>(group.rank());
    auto const patterns = patterns_of_lists(group, me == 0 ? 3 : 1, send[me], receive[me]);
    EXPECT_EQ(patterns[0].item, (std::vector<std::int32_t>{0, 2}));
    EXPECT_EQ(patterns[0].receiver, (std::vector<Rank>{1, 1}));
    EXPECT_EQ(patterns[1].receiver, std::vector<Rank>{1});
    EXPECT_EQ(patterns[1].position, (std::vector<std::int32_t>{2, 0, 1}));  // items 0, 2 of rank 0, its own
    EXPECT_TRUE(patterns[0].position.empty());
  });
}

TEST(Patterns, ListsThatDoNotFitAreRefusedOnAllRanks) {
  struct {
    std::vector<Lists> send, receive;
    char const* text;
  } const all[] = {
      {{{{}, {0}}, {{}, {}}}, {{{}, {}}, {{}, {}}}, "rank 0 sends 1 items to rank 1, which receives 0"},
      {{{{}, {2}}, {{}, {}}}, {{{}, {}}, {{0}, {}}}, "rank 0: send[1][0] is 2, not below the 2 owned items"},
      {{{{}, {0, 0}}, {{}, {}}}, {{{}, {}}, {{0, 1}, {}}}, "rank 0: send[1] has item 0 twice"},
      {{{{}, {0}}, {{}, {}}}, {{{}, {}}, {{1}, {}}}, "rank 1: receive[0][0] is 1, not below the 1 ghosts"},
      {{{{}, {0, 1}}, {{}, {}}},
       {{{}, {}}, {{1, 1}, {}}},
       "rank 1: receive[0][1] is ghost 1, which is received"},
      {{{{}, {0}}, {{}}}, {{{}, {}}, {{0}, {}}}, "rank 1: 1 send lists and 2 receive lists for 2 ranks"},
  };
  for (auto const& one : all) {
    std::string const text = refused([&] {
      run_on_threads(2, [&](Group& group) {
        auto const me = static_cast<std::size_t>(group.rank());
        patterns_of_lists(group, 2, one.send[me], one.receive[me]);
      });
    });
    EXPECT_EQ(text.find(one.text), 0u) << text;
  }
}

}  // namespace
}  // namespace hostless
