// Duties of blocks are played in random orders: plans of all routes, 2 to 8 ranks, 1 to 16 blocks each.
// Faults that are put in on purpose show that what is looked for would be found.
#include "exchange/kernel_duties.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "duty_play.hpp"
#include "hostless/base/error.hpp"
#include "hostless/plan/checker.hpp"
#include "sample.hpp"

namespace hostless {
namespace {

using testing::at;
using testing::DutyPlay;
using testing::Fault;
using testing::Played;
using testing::Reads;
using testing::routes;
using testing::Sums;

struct Case {
  Reads reads;
  Route route;
  NodeMap nodes;
  std::vector<int> blocks;
  bool lands = true, has_sums = false, busy = false;
  unsigned seed = 0;

  static Case random(unsigned seed) {
    std::mt19937 random(seed);
    auto const below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    int const ranks = 2 + below(7);
    Case one{testing::random_reads(ranks, seed, below(3) == 0 ? 60 : 15),
             routes[at(below(5))],
             testing::random_nodes(ranks, seed + 7),
             {}};
    for (int r = 0; r < ranks; ++r) one.blocks.push_back(1 + below(16));
    one.has_sums = below(2) == 0;
    one.lands = !one.has_sums || below(2) == 0;
    one.busy = below(2) == 0;
    one.seed = seed;
    return one;
  }
  PlanOptions options() const {
    return {has_sums        ? ReuseGuarantee::reduction
            : seed % 5 == 0 ? ReuseGuarantee::credit
                            : ReuseGuarantee::answer,
            Space::host, lands && seed % 2 == 0};
  }
  KernelShape shape(std::size_t rank) const {
    KernelShape shape;
    shape.blocks = blocks[rank];
    shape.lands = lands;
    std::mt19937 random(seed + 31 * static_cast<unsigned>(rank));
    auto const block = [this, rank](std::size_t k) {
      return static_cast<std::int32_t>(k % at(blocks[rank]));
    };
    if (busy) {
      for (int b = 0; b < shape.blocks; ++b) shape.boundary_rows.push_back(random() % 40);
      shape.block_of_item = [block](std::int32_t item) { return block(at(item) / 3); };
      std::size_t const ghosts = reads.ghosts(static_cast<Rank>(rank)).size();
      for (std::size_t g = 0; lands && g < ghosts; ++g) shape.block_of_ghost.push_back(block(random()));
    }
    return shape;
  }
};

struct Made {
  std::vector<ExchangePlan> plans;
  std::vector<PeerCopies> copies;
  std::vector<KernelDuties> duties;
};

Made made_of(Case const& one) {
  Made made{make_plans(one.route, one.reads.patterns(), one.nodes, one.options()), {}, {}};
  made.copies.resize(made.plans.size());
  made.duties.resize(made.plans.size());
  run_on_threads(static_cast<int>(made.plans.size()), [&](Group& group) {
    std::size_t const me = at(group.rank());
    made.copies[me] = peer_copies(made.plans[me], group, true);
    made.duties[me] = kernel_duties(made.plans[me], group, one.shape(me), {one.has_sums, 8});
  });
  return made;
}

Played play(Case const& one, Made const& made, unsigned schedule, Fault fault = Fault::none) {
  Sums const sums = !one.has_sums ? Sums::none : schedule % 2 == 0 ? Sums::behind : Sums::begun_before;
  std::vector<std::vector<std::pair<Rank, std::int32_t>>> ghosts;
  for (std::size_t r = 0; r < made.plans.size(); ++r)
    ghosts.push_back(one.reads.ghosts(static_cast<Rank>(r)));
  return DutyPlay(made.plans, made.duties, one.lands, sums, fault).run(ghosts, schedule);
}

std::string described(Case const& one) {
  return "case " + std::to_string(one.seed) + ": " + std::to_string(one.blocks.size()) + " ranks, route " +
         name(one.route) + (one.has_sums ? ", sums" : ", answers") + (one.lands ? ", ghosts land" : "");
}

// ------------------------------------------------------------------------------------------- in any order
TEST(KernelDuties, EveryGhostGetsItsItemInAnyOrder) {
  std::int64_t read = 0, passed_on = 0;
  for (unsigned seed = 1; seed <= test::of_all(240u, 24u); ++seed) {
    Case const one = Case::random(seed);
    Made const made = made_of(one);
    ASSERT_EQ(check(made.plans, one.reads.patterns()), std::vector<std::string>{}) << described(one);
    std::int64_t ghosts = 0;
    for (ExchangePlan const& plan : made.plans) ghosts += plan.ghosts;
    for (KernelDuties const& duties : made.duties) passed_on += duties.staging;
    for (unsigned schedule = 0; schedule < 6; ++schedule) {
      Played const found = play(one, made, 1000 * seed + schedule);
      ASSERT_EQ(found.problem, "") << described(one) << ", order " << schedule;
      ASSERT_EQ(found.read, DutyPlay::exchanges * ghosts) << described(one);
      read += found.read;
    }
  }
  EXPECT_GT(read, test::of_all(100'000, 10'000));
  EXPECT_GT(passed_on, test::of_all(1000, 100));
}

// -------------------------------------------------------------------------------- what would be found
/// How many of some plays end with this problem.
int found_with(Fault fault, bool has_sums, std::string const& problem) {
  int found = 0;
  for (unsigned seed = 1; seed <= test::of_all(60u, 15u); ++seed) {
    Case one = Case::random(seed);
    one.has_sums = has_sums;
    one.lands = true;
    one.busy = false;
    Made const made = made_of(one);
    for (unsigned schedule = 0; schedule < 4; ++schedule)
      found += play(one, made, 1000 * seed + schedule, fault).problem.find(problem) != std::string::npos;
  }
  return found;
}
TEST(KernelDutiesGoneWrong, OneBufferIsOverwritten) {
  EXPECT_GT(found_with(Fault::one_buffer, false, "a word is overwritten"), test::of_all(20, 5));
  EXPECT_GT(found_with(Fault::one_buffer, true, "a word is overwritten"), test::of_all(20, 5));
}
TEST(KernelDutiesGoneWrong, WithoutAnswersWordsAreOverwritten) {
  EXPECT_GT(found_with(Fault::unanswered, false, "a word is overwritten"), test::of_all(20, 5));
}

// ------------------------------------------------------------------------------------------- what they are
using Copy = std::tuple<std::int32_t, std::int32_t, std::int16_t, bool, bool>;
Copy told(PeerCopy const& c) { return {c.from, c.to, c.target, c.from_staging, c.to_staging}; }

TEST(KernelDuties, AreTheCopiesOfThePlanOnRisingLevels) {
  for (unsigned seed = 300; seed < 360; ++seed) {
    Case one = Case::random(seed);
    one.lands = false, one.has_sums = true;
    Made const made = made_of(one);
    std::map<std::pair<std::size_t, std::int32_t>, int> stored;  // staged item -> level
    for (std::size_t r = 0; r < made.duties.size(); ++r) {
      KernelDuties const& d = made.duties[r];
      ASSERT_EQ(d.levels, made.duties[0].levels);
      std::vector<Copy> planned, dealt;
      for (auto const& round : made.copies[r].rounds)
        for (PeerCopy const& copy : round) planned.push_back(told(copy));
      for (PeerCopy const& copy : d.copies) dealt.push_back(told(copy));
      std::sort(planned.begin(), planned.end());
      std::sort(dealt.begin(), dealt.end());
      ASSERT_EQ(dealt, planned) << described(one);
      for (int list = 0; list < d.blocks * d.levels; ++list)
        for (std::int32_t k = d.first[at(list)]; k < d.first[at(list) + 1]; ++k)
          if (PeerCopy const& copy = d.copies[at(k)]; copy.to_staging) {
            ASSERT_TRUE(stored.emplace(std::pair(at(copy.target), copy.to), list % d.levels).second);
          }
    }
    for (std::size_t r = 0; r < made.duties.size(); ++r) {
      KernelDuties const& d = made.duties[r];
      for (int list = 0; list < d.blocks * d.levels; ++list)
        for (std::int32_t k = d.first[at(list)]; k < d.first[at(list) + 1]; ++k) {
          PeerCopy const& copy = d.copies[at(k)];
          EXPECT_EQ(copy.from_staging, list % d.levels > 0);
          if (copy.from_staging) {
            EXPECT_LT(stored.at({r, copy.from}), list % d.levels);
          } else if (one.busy) {
            EXPECT_EQ(list / d.levels, one.shape(r).block_of_item(copy.from));
          }
        }
    }
  }
}

/// Many items pass through one rank of each node.
Case many_items(int blocks, int items) {
  Case one{Reads(std::vector<std::int64_t>(8, items)), Route::three_step, NodeMap::blocks(8, 4), {}};
  for (Rank source = 0; source < 8; ++source)
    for (std::int32_t k = 0; k < items; ++k) one.reads.add(source, k, {(source + 4) % 8, (source + 5) % 8});
  one.blocks.assign(8, blocks);
  one.has_sums = true, one.lands = false;
  return one;
}

/// Items of levels after the first, by block.
std::vector<std::int64_t> passed_on(KernelDuties const& d) {
  std::vector<std::int64_t> items(at(d.blocks), 0);
  for (int block = 0; block < d.blocks; ++block)
    items[at(block)] =
        d.first_of(block + 1, 0) - (d.levels > 1 ? d.first_of(block, 1) : d.first_of(block + 1, 0));
  return items;
}

TEST(KernelDutiesGoneWrong, LevelsThatFallWaitInACircle) {
  Case one = many_items(1, 0);
  one.nodes = NodeMap::blocks(8, 2);
  one.reads = Reads(std::vector<std::int64_t>(8, 12));
  for (Rank source = 0; source < 8; ++source)
    for (std::int32_t k = 0; k < 12; ++k) one.reads.add(source, k, {0, 1, 2, 3, 4, 5, 6, 7});
  Made const made = made_of(one);
  for (unsigned schedule = 0; schedule < 4; ++schedule) {
    EXPECT_EQ(play(one, made, schedule).problem, "");
    EXPECT_NE(play(one, made, schedule, Fault::falling_levels).problem.find("waits for ever"),
              std::string::npos);
  }
}

TEST(KernelDuties, ArePassedOnByWhoHasLeastToDo) {
  Case const one = many_items(16, 500);
  Made made = made_of(one);
  bool any = false;
  for (std::size_t r = 0; r < 8; ++r) {
    KernelDuties const even = made.duties[r];
    auto const items = passed_on(even);
    auto const [least, most] = std::minmax_element(items.begin(), items.end());
    EXPECT_LE(*most - *least, duty_grain + 8) << "rank " << r;
    any = any || *most > 0;

    KernelShape shape = one.shape(r);
    shape.boundary_rows.assign(16, 100'000);
    shape.boundary_rows[3] = shape.boundary_rows[12] = 0;
    auto const shared = passed_on(share_duties(made.copies[r], shape, 0));
    for (std::size_t b = 0; b < shared.size(); ++b)
      if (b != 3 && b != 12) {
        EXPECT_EQ(shared[b], 0) << "block " << b << " has boundary rows";
      }
    EXPECT_LE(std::abs(shared[3] - shared[12]), duty_grain + 8);
  }
  EXPECT_TRUE(any);
}

TEST(KernelDuties, DirectPlansHaveOneLevelAndPassNothingOn) {
  for (unsigned seed = 400; seed < 420; ++seed) {
    Case one = Case::random(seed);
    one.route = Route::direct;
    for (KernelDuties const& d : made_of(one).duties) {
      EXPECT_EQ(d.levels, 1);
      EXPECT_EQ(d.staging, 0);
    }
  }
}

TEST(KernelDuties, LandWhereTheyAreWanted) {
  Case one = many_items(4, 10);
  one.lands = true, one.busy = true;
  Made const made = made_of(one);
  for (std::size_t r = 0; r < 8; ++r) {
    KernelDuties const& d = made.duties[r];
    auto const wanted = one.shape(r).block_of_ghost;
    ASSERT_EQ(d.landings.size(), wanted.size());
    for (std::size_t block = 0; block < 4; ++block)
      for (std::int32_t k = d.first_landing[block]; k < d.first_landing[block + 1]; ++k)
        EXPECT_EQ(at(wanted[at(d.landings[at(k)])]), block);
  }
}

}  // namespace
}  // namespace hostless
