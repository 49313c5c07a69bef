// Copies are executed on plain vectors, round by round: every item's value is its global identity, and what
// is read or stored out of turn names itself.
#include "exchange/peer_copies.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "hostless/base/error.hpp"
#include "hostless/plan/checker.hpp"
#include "hostless/plan/routes.hpp"
#include "plan_cases.hpp"
#include "refused.hpp"

namespace hostless {
namespace {

using testing::at;
using testing::Reads;
using testing::routes;
using testing::value_of;

std::vector<PeerCopies> copies_of(std::vector<ExchangePlan> const& plans) {
  std::vector<PeerCopies> copies(plans.size());
  run_on_threads(static_cast<int>(plans.size()), [&](Group& group) {
    copies[at(group.rank())] = peer_copies(plans[at(group.rank())], group);
  });
  return copies;
}

/// What a rank holds; items that nobody has stored are -1.
struct Memory {
  std::vector<std::int64_t> vector, staging;  // vector: by offset, from the first ghost of a lower rank on
  std::set<std::int64_t> read_staging;
};

class Machine {
 public:
  Machine(std::vector<ExchangePlan> const& plans, std::vector<PeerCopies> const& copies)
      : plans_(plans), copies_(copies), memory_(plans.size()) {
    for (std::size_t r = 0; r < plans.size(); ++r) {
      memory_[r].vector.assign(at(plans[r].owned + plans[r].ghosts), -1);
      memory_[r].staging.assign(at(copies[r].staging), -1);
      for (std::int64_t i = 0; i < plans[r].owned; ++i) *row(r, i) = value_of(plans[r].rank, i);
    }
  }

  /// All copies of a round read what was there before the round.
  void run(std::size_t round) {
    std::vector<std::pair<std::int64_t*, std::int64_t>> stores;
    for (std::size_t r = 0; r < plans_.size(); ++r)
      for (PeerCopy const& copy : copies_[r].rounds.at(round)) {
        std::int64_t const value = read(r, copy);
        EXPECT_NE(value, -1) << "rank " << r << " reads item " << copy.from << " before it is written";
        stores.emplace_back(target(copy), value);
        crossings_ += plans_[0].nodes.node[r] != plans_[0].nodes.node[at(copy.target)];
      }
    for (auto const& [where, value] : stores) {
      EXPECT_EQ(*where, -1) << "an item is written again, with " << value;
      *where = value;
    }
  }

  void expect_ghosts(Reads const& reads) {
    for (std::size_t r = 0; r < plans_.size(); ++r) {
      auto const ghosts = reads.ghosts(static_cast<Rank>(r));
      for (std::size_t g = 0; g < ghosts.size(); ++g)
        EXPECT_EQ(*row(r, plans_[r].vector_offset(plans_[r].owned + static_cast<std::int64_t>(g))),
                  value_of(ghosts[g].first, ghosts[g].second))
            << "ghost " << g << " of rank " << r;
      EXPECT_EQ(memory_[r].read_staging.size(), memory_[r].staging.size()) << "rank " << r;
    }
  }
  std::int64_t crossings() const { return crossings_; }

 private:
  std::int64_t* row(std::size_t rank, std::int64_t vector_offset) {
    return &memory_[rank].vector.at(at(vector_offset + plans_[rank].ghosts_below));
  }
  std::int64_t read(std::size_t rank, PeerCopy const& copy) {
    if (copy.from_staging) {
      memory_[rank].read_staging.insert(copy.from);
      return memory_[rank].staging.at(at(copy.from));
    }
    EXPECT_TRUE(copy.from >= 0 && copy.from < plans_[rank].owned) << copy.from << " is no owned row";
    return *row(rank, copy.from);
  }
  std::int64_t* target(PeerCopy const& copy) {
    std::size_t const rank = at(copy.target);
    if (copy.to_staging) return &memory_[rank].staging.at(at(copy.to));
    EXPECT_TRUE(copy.to < 0 || copy.to >= plans_[rank].owned) << copy.to << " is no ghost";
    return row(rank, copy.to);
  }

  std::vector<ExchangePlan> const& plans_;
  std::vector<PeerCopies> const& copies_;
  std::vector<Memory> memory_;
  std::int64_t crossings_ = 0;
};

bool ordered(std::vector<PeerCopy> const& copies) {
  return std::is_sorted(copies.begin(), copies.end(), [](PeerCopy const& a, PeerCopy const& b) {
    return std::tuple(a.from_staging, a.from, a.target, a.to) <
           std::tuple(b.from_staging, b.from, b.target, b.to);
  });
}

/// Items that the plan's messages bring over node borders.
std::int64_t planned_crossings(std::vector<ExchangePlan> const& plans) {
  std::int64_t items = 0;
  for (ExchangePlan const& plan : plans)
    for (Stage const& stage : plan.stages)
      for (Message const& message : stage.out)
        if (message.locality == Locality::network) items += message.items;
  return items;
}

void expect_exchanged(Reads const& reads, std::vector<ExchangePlan> const& plans) {
  ASSERT_EQ(check(plans, reads.patterns()), std::vector<std::string>{});
  std::vector<PeerCopies> const copies = copies_of(plans);
  std::size_t const depth = std::map<Route, std::size_t>{
      {Route::direct, 1},
      {Route::two_step, 2},
      {Route::three_step, 3},
      {Route::split, 3},
      {Route::leader, 3}}.at(plans[0].route);
  for (PeerCopies const& one : copies) {
    ASSERT_EQ(one.rounds.size(), copies[0].rounds.size());
    EXPECT_LE(one.rounds.size(), depth);
    EXPECT_GE(one.rounds.size(), 1u);
    EXPECT_TRUE(depth > 1 || one.staging == 0);
    EXPECT_TRUE(std::all_of(one.rounds.begin(), one.rounds.end(), ordered));
  }
  Machine machine(plans, copies);
  for (std::size_t round = 0; round < copies[0].rounds.size(); ++round) machine.run(round);
  machine.expect_ghosts(reads);
  EXPECT_EQ(machine.crossings(), planned_crossings(plans));
}

class Ranks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, Ranks, ::testing::Range(1, 8));

TEST_P(Ranks, EveryGhostIsStoredOnceInTime) {
  int const ranks = GetParam();
  for (unsigned seed = 1; seed <= 25; ++seed) {
    Reads const reads = testing::random_reads(ranks, 100 * static_cast<unsigned>(ranks) + seed);
    NodeMap const nodes = seed % 2 == 0 ? testing::random_nodes(ranks, seed)
                                        : NodeMap::blocks(ranks, 1 + static_cast<int>(seed) % 3);
    PlanOptions options;
    if (seed % 5 == 0) options.reuse_guarantee = ReuseGuarantee::credit;
    for (Route route : routes) {
      SCOPED_TRACE(std::string(name(route)) + ", seed " + std::to_string(seed));
      expect_exchanged(reads, make_plans(route, reads.patterns(), nodes, options));
    }
  }
}

using Round = std::vector<PeerCopy>;

// Rank 0 reads an item of its own; rank 1 has two ghosts below its rows, which have offsets -2 and -1.
TEST(PeerCopies, OfADirectPlan) {
  Reads const reads = Reads({4, 2, 3}).add(0, 1, {0, 1}).add(0, 3, {1, 2}).add(2, 0, {1});
  for (ReuseGuarantee reuse_guarantee : {ReuseGuarantee::reduction, ReuseGuarantee::credit}) {
    auto const copies =
        copies_of(make_plans(Route::direct, reads.patterns(), NodeMap::blocks(3, 2), {reuse_guarantee}));
    ASSERT_EQ(copies[0].rounds.size(), 1u);
    EXPECT_EQ(copies[0].rounds[0], (Round{{1, 4, 0, false, false},
                                          {1, -2, 1, false, false},
                                          {3, -1, 1, false, false},
                                          {3, -1, 2, false, false}}));
    EXPECT_TRUE(copies[1].rounds[0].empty());
    EXPECT_EQ(copies[2].rounds[0], (Round{{0, 2, 1, false, false}}));
  }
}

// Figure 2.4: rank 5 passes both items of rank 1 on and reads none; rank 4 reads what it passes on to rank 5,
// so that item comes once and is copied a round later.
TEST(PeerCopies, OfTwoSteps) {
  auto const copies =
      copies_of(make_plans(Route::two_step, testing::figure().patterns(), NodeMap::blocks(8, 4)));
  ASSERT_EQ(copies[0].rounds.size(), 2u);
  EXPECT_EQ(copies[0].rounds[0], (Round{{1, 0, 4, false, true}}));
  EXPECT_EQ(copies[1].rounds[0], (Round{{2, 0, 5, false, true}, {3, 1, 5, false, true}}));
  EXPECT_EQ(copies[2].rounds[0], (Round{{0, -1, 3, false, false}}));
  EXPECT_EQ(copies[4].staging, 1);
  EXPECT_EQ(copies[4].rounds[1], (Round{{0, -2, 4, true, false}, {0, -1, 5, true, false}}));
  EXPECT_EQ(copies[5].staging, 2);
  EXPECT_EQ(copies[5].rounds[1], (Round{{0, -1, 4, true, false},
                                        {0, -1, 6, true, false},
                                        {0, -2, 7, true, false},
                                        {1, -1, 7, true, false}}));
}

// Figure 2.3: rank 1 gathers on rank 0, whose own item leaves with what it gathered.
TEST(PeerCopies, OfThreeSteps) {
  auto const copies =
      copies_of(make_plans(Route::three_step, testing::figure().patterns(), NodeMap::blocks(8, 4)));
  ASSERT_EQ(copies[7].rounds.size(), 3u);
  EXPECT_EQ(copies[0].staging, 2);
  EXPECT_EQ(copies[1].rounds[0], (Round{{2, 0, 0, false, true}, {3, 1, 0, false, true}}));
  EXPECT_EQ(copies[0].rounds[1],
            (Round{{1, 0, 7, false, true}, {0, 1, 7, true, true}, {1, -1, 7, true, false}}));
  EXPECT_EQ(copies[7].staging, 2);
  EXPECT_EQ(copies[7].rounds[2], (Round{{0, -2, 4, true, false},
                                        {0, -1, 5, true, false},
                                        {1, -1, 4, true, false},
                                        {1, -1, 6, true, false},
                                        {1, -2, 7, true, false}}));
}

TEST(PeerCopies, NobodyNeedsAnything) {
  for (PeerCopies const& one :
       copies_of(make_plans(Route::three_step, Reads({3, 3, 3}).patterns(), NodeMap::blocks(3, 2)))) {
    EXPECT_EQ(one.staging, 0);
    EXPECT_EQ(one.rounds, std::vector<Round>{{}});
  }
}

/// Rank 7 of figure 2.3 receives in stage 2 and passes on in stage 3; rank 0 gathers in stage 1.
struct Refused : ::testing::Test {
  std::vector<ExchangePlan> plans =
      make_plans(Route::three_step, testing::figure().patterns(), NodeMap::blocks(8, 4));

  /// Every rank leaves with the same error.
  void expect(std::string const& part) {
    expect_refused_by_all(plans.size(), part,
                          [&](Group& group) { peer_copies(plans[at(group.rank())], group); });
  }
};

TEST_F(Refused, AMessageThatIsNotReceived) {
  Message more = plans[2].stages[0].out.at(0);
  more.id = 99;
  plans[2].stages[0].out.push_back(more);
  expect("rank 3: rank 2 sends message 99, which is not received");
  plans[2].stages[0].out.pop_back();
  plans[3].stages[0].in.clear();
  expect("rank 3: ghost 0 is never written");
}

TEST_F(Refused, AMessageThatIsNotSent) {
  plans[2].stages[0].out.clear();
  expect("rank 3: message 0 is received, but rank 2 does not send it");
}

TEST_F(Refused, SidesThatDiffer) {
  plans[1].stages[1].out[0].items = 1;
  expect("rank 0: message 1 is sent by rank 1 with 1 items, but 2 of rank 1 are received");
}

TEST_F(Refused, AnIdTwice) {
  plans[7].stages[3].out[1].id = plans[7].stages[3].out[0].id;
  expect("rank 7: message 3 is sent twice");
}

TEST_F(Refused, AGhostThatNothingWrites) {
  plans[7].stages[2].unpack.clear();
  expect("rank 7: ghost 0 is never written");
}

TEST_F(Refused, WhatIsWrittenTwice) {
  plans[7].stages[2].unpack.push_back(plans[7].stages[2].unpack[0]);
  expect("rank 7: stage 2 writes item 4 of buffer 0 again");
}

TEST_F(Refused, WhatIsReadTooEarly) {
  plans[0].stages[2].pack.pop_back();
  expect("rank 0: stage 2 reads item 1 of buffer 2 before anything has written it");
}

TEST_F(Refused, OwnedItemsThatAreOverwritten) {
  Pieces from, to;
  from.count = to.count = 1;
  to.first = 2;
  plans[5].stages[0].pack.push_back({5, from, to});
  expect("rank 5: stage 0 overwrites owned item 2");
}

TEST_F(Refused, PassingOnWithoutWaiting) {
  plans[7].stages[3].after.clear();
  expect("rank 7: stage 3 reads item 0 of buffer 1 before anything has written it");
  plans[7].stages[3].after = {0};  // runs behind stage 2 by chance only
  expect("rank 7: message 3 passes on what message 2 brings without waiting for stage 2");
}

TEST_F(Refused, StagesInACircle) {
  plans[3].stages[1].after.push_back(3);
  expect("rank 3: stage 1 waits for itself");
}

TEST_F(Refused, RanksInACircle) {
  plans = make_plans(Route::direct, Reads({1, 1}).add(0, 0, {1}).add(1, 0, {0}).patterns(),
                     NodeMap::blocks(2, 2));
  testing::receive_before_sending(plans);
  expect("wait for each other in a circle");
}

TEST_F(Refused, PlansOfSeveralSets) {
  plans[6].fingerprint ^= 1;
  expect("ranks 0 and 6 have different fingerprints");
}

TEST_F(Refused, PlansOfOtherRanks) {
  std::swap(plans[1], plans[2]);
  expect("rank 2: the plan is of rank 2 of 8, this is rank 1 of 8");
}

}  // namespace
}  // namespace hostless
