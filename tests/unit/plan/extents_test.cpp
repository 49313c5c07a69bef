// Plans whose items have lengths of their own, proven by the checker as plans of units.
#include "hostless/plan/extents.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "hostless/base/error.hpp"
#include "hostless/plan/checker.hpp"
#include "hostless/plan/routes.hpp"
#include "plan/plans_beside.hpp"
#include "plan_cases.hpp"

namespace hostless {
namespace {

using testing::at;
using testing::Reads;

/// Lengths for the items of a pattern, and places in any order, without gaps.
std::vector<Extents> drawn_extents(Reads const& reads, std::mt19937& random, int most) {
  auto const laid_out = [&](std::vector<std::int64_t> const& lengths, std::int64_t& units) {
    std::vector<std::size_t> order(lengths.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (random() % 2 == 0) std::shuffle(order.begin(), order.end(), random);
    std::vector<Extent> all(lengths.size());
    for (std::size_t const k : order) all[k] = {std::exchange(units, units + lengths[k]), lengths[k]};
    return all;
  };
  std::vector<std::vector<std::int64_t>> lengths;
  std::vector<Extents> all(reads.owned.size());
  for (std::size_t r = 0; r < all.size(); ++r) {
    lengths.emplace_back(at(reads.owned[r]));
    for (std::int64_t& length : lengths[r])
      length = 1 + static_cast<int>(random() % static_cast<unsigned>(most));
    all[r].owned = laid_out(lengths[r], all[r].send_units);
  }
  for (std::size_t r = 0; r < all.size(); ++r) {
    std::vector<std::int64_t> of_ghosts;
    for (auto const& [source, item] : reads.ghosts(static_cast<Rank>(r)))
      of_ghosts.push_back(lengths[at(source)][at(item)]);
    all[r].ghosts = laid_out(of_ghosts, all[r].receive_units);
  }
  return all;
}

/// The same as a pattern of units, each an item of its own.
std::vector<Pattern> of_units(Reads const& reads, std::vector<Extents> const& extents) {
  std::vector<std::int64_t> units;
  for (Extents const& one : extents) units.push_back(one.send_units);
  Reads all(units);
  std::vector<std::vector<std::array<std::int64_t, 3>>> ghosts(extents.size());  // source, unit, place
  for (std::size_t r = 0; r < extents.size(); ++r) {
    auto const mine = reads.ghosts(static_cast<Rank>(r));
    for (std::size_t g = 0; g < mine.size(); ++g) {
      Extent const &from = extents[at(mine[g].first)].owned[at(mine[g].second)], &to = extents[r].ghosts[g];
      for (std::int64_t k = 0; k < from.units; ++k) {
        all.add(mine[g].first, static_cast<std::int32_t>(from.first + k), {static_cast<Rank>(r)});
        ghosts[r].push_back({mine[g].first, from.first + k, to.first + k});
      }
    }
  }
  auto patterns = all.patterns();
  for (std::size_t r = 0; r < extents.size(); ++r) {
    std::sort(ghosts[r].begin(), ghosts[r].end());
    for (auto const& ghost : ghosts[r]) patterns[r].position.push_back(static_cast<std::int32_t>(ghost[2]));
  }
  return patterns;
}

TEST(StretchedPlans, AreProvenAsPlansOfUnits) {
  int moved = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    int const ranks = 1 + static_cast<int>(random() % 7);
    Reads const reads = testing::random_reads(ranks, seed, 9);
    auto const patterns = reads.patterns();
    auto const extents = drawn_extents(reads, random, seed % 5 == 0 ? 1 : 5);
    NodeMap const nodes = testing::random_nodes(ranks, seed);
    PlanOptions options{ReuseGuarantee::answer, Space::host, true};
    if (seed % 3 == 0) options.reuse_guarantee = ReuseGuarantee::credit;
    for (Route const route : testing::routes) {
      PlanOptions const how = testing::varied(route, nodes, seed, options);
      auto const equal = make_plans(route, patterns, nodes, how);
      auto const plans = stretched(equal, patterns, how, extents);
      for (std::string const& text : check(plans, of_units(reads, extents)))
        ADD_FAILURE() << "seed " << seed << " by " << name(route) << ": " << text;
      std::vector<ExchangePlan> alone;  // each rank by itself, beside its partners
      for (Rank r = 0; r < ranks; ++r)
        alone.push_back(
            stretched(plans_beside(route, patterns, nodes, r, how), patterns, how, extents).front());
      for (std::string const& text : check(alone, of_units(reads, extents)))
        ADD_FAILURE() << "seed " << seed << " by " << name(route) << ", alone: " << text;
      for (std::size_t r = 0; r < plans.size(); ++r) {
        EXPECT_EQ(alone[r].fingerprint, plans[r].fingerprint);
        moved += static_cast<int>(plans[r].items_sent());
        EXPECT_EQ(plans[r].stages.size(), equal[r].stages.size());
        EXPECT_EQ(plans[r].fingerprint, plans[0].fingerprint);
      }
    }
  }
  EXPECT_GT(moved, 10000);
}

// Of rank 0: item 0 to ranks 1 and 2, item 1 to rank 2.
struct Stretched : ::testing::Test {
  std::vector<Pattern> patterns = Reads({2, 0, 0}).add(0, 0, {1, 2}).add(0, 1, {2}).patterns();
  PlanOptions options{ReuseGuarantee::answer, Space::host, true};
  std::vector<ExchangePlan> plans = make_plans(Route::direct, patterns, NodeMap::blocks(3, 3), options);
  std::vector<Extents> extents{
      {7, 0, {{4, 3}, {0, 2}}, {}}, {0, 5, {}, {{1, 3}}}, {0, 9, {}, {{6, 3}, {0, 2}}}};

  void expect(std::string const& part) {
    try {
      stretched(plans, patterns, options, extents);
      ADD_FAILURE() << "accepted";
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
};

TEST_F(Stretched, SendsFromWhereItemsLieTogether) {
  auto const made = stretched(plans, patterns, options, extents);
  auto const& out = made[0].stages[1].out;
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].items, 3);  // item 0 alone: from its place, to its ghost's
  EXPECT_EQ(out[0].from, 0);
  EXPECT_EQ(out[0].from_first, 4);
  EXPECT_EQ(out[0].to, 1);
  EXPECT_EQ(out[0].to_first, 1);
  EXPECT_EQ(out[1].items, 5);  // both: units 4 to 6, then 0 and 1, through a buffer on either side
  EXPECT_EQ(made[0].buffers.size(), 3u);
  EXPECT_EQ(out[1].from, 2);
  EXPECT_EQ(out[1].to, 2);
  EXPECT_EQ(made[0].stages[1].pack.size(), 2u);
  EXPECT_EQ(made[2].stages[1].unpack.size(), 2u);
  auto other = extents;
  other[1].ghosts[0].first = 2;
  EXPECT_NE(stretched(plans, patterns, options, other)[0].fingerprint, made[0].fingerprint);
}

TEST_F(Stretched, RefusesWhatDoesNotFit) {
  extents[1].ghosts[0].units = 2;
  expect("item 0 of rank 0 has 3 units, and 2 on rank 1");
  extents[1].ghosts[0] = {3, 3};
  expect("extents[1].ghosts[0]: 3 units from 3 on leave the array's 5");
  extents[1].ghosts[0] = {0, 3};
  extents[2].ghosts[1] = {7, 2};
  expect("extents[2].ghosts[0] and [1] share units");
  extents[2].ghosts.pop_back();
  expect("extents[2].ghosts: 1 of 2");
  extents[2].ghosts = {{6, 3}, {0, 0}};
  extents[0].owned[1].units = 0;
  expect("extents[0].owned[1] is empty and read by others");
  extents[0].owned[1] = {0, std::int64_t{1} << 31};
  extents[2].ghosts[1] = {10, std::int64_t{1} << 31};
  extents[0].send_units = extents[2].receive_units = std::int64_t{1} << 32;
  expect("rank 0 would hold 4294967296 units in one buffer (offsets have 32 bits)");
  extents.pop_back();
  expect("3 plans, 3 patterns and 2 extents");
  extents = {{7, 0, {{4, 3}}, {}}, {0, 5, {}, {{1, 3}}}, {0, 9, {}, {{6, 3}, {0, 2}}}};
  expect("extents[0].owned: 1 of 2 items");
  extents[0].owned.push_back({0, 2});
  plans[1].route = Route::two_step;
  expect("plans[1] is of other ranks, another route or other patterns");
  plans = make_plans(Route::direct, patterns, NodeMap::blocks(3, 3),
                     {ReuseGuarantee::answer, Space::host, false});
  expect("plans[0] has its ghosts around its items");
}

}  // namespace
}  // namespace hostless
