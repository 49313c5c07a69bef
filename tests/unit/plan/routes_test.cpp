#include "hostless/plan/routes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "hostless/base/error.hpp"
#include "hostless/plan/checker.hpp"
#include "hostless/plan/store.hpp"
#include "plan_cases.hpp"

namespace hostless {
namespace {

using testing::at;
using testing::Reads;
using testing::routes;
using testing::value_of;

std::vector<std::int64_t> offsets(Pieces const& pieces) {
  std::vector<std::int64_t> all;
  for (auto index : pieces.index) all.push_back(pieces.first + index);
  if (pieces.index.empty())
    for (int row = 0; row < pieces.rows; ++row)
      for (int k = 0; k < pieces.count; ++k) all.push_back(pieces.first + row * pieces.stride + k);
  return all;
}

/// Executes plans in the plainest way, all ranks in step through the listed stages, and returns the owned
/// items and ghosts of each.
std::vector<std::vector<std::int64_t>> execute(std::vector<ExchangePlan> const& plans) {
  std::vector<std::vector<std::vector<std::int64_t>>> memory;
  for (ExchangePlan const& plan : plans) {
    auto& buffers = memory.emplace_back();
    for (Buffer const& buffer : plan.buffers) buffers.emplace_back(at(buffer.items), -1);
    for (std::int64_t i = 0; i < plan.owned; ++i) buffers[0][at(i)] = value_of(plan.rank, i);
  }
  auto run = [&](std::size_t r, std::vector<Move> const& moves) {
    for (Move const& move : moves) {
      auto const from = offsets(move.from), to = offsets(move.to);
      for (std::size_t k = 0; k < to.size(); ++k)
        memory[r].at(at(move.to.buffer)).at(at(to[k])) =
            memory[r].at(at(move.from.buffer)).at(at(from.at(k)));
    }
  };
  for (std::size_t s = 0; s < plans[0].stages.size(); ++s) {
    std::map<MessageId, std::vector<std::int64_t>> mail;
    for (std::size_t r = 0; r < plans.size(); ++r) {
      run(r, plans[r].stages.at(s).pack);
      for (Message const& m : plans[r].stages[s].out) {
        EXPECT_EQ(mail.count(m.id), 0u);
        auto const first = memory[r].at(at(m.from)).begin() + m.from_first;
        mail[m.id].assign(first, first + m.items);
      }
    }
    for (std::size_t r = 0; r < plans.size(); ++r) {
      for (Message const& m : plans[r].stages[s].in) {
        EXPECT_EQ(mail.at(m.id).size(), at(m.items));
        std::copy(mail[m.id].begin(), mail[m.id].end(), memory[r].at(at(m.to)).begin() + m.to_first);
      }
      run(r, plans[r].stages[s].unpack);
    }
  }
  std::vector<std::vector<std::int64_t>> bound;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    bound.push_back(std::move(memory[r][0]));
    if (plans[r].receive == 1) bound[r].insert(bound[r].end(), memory[r][1].begin(), memory[r][1].end());
  }
  return bound;
}

void expect_exchanged(Reads const& reads, std::vector<ExchangePlan> const& plans) {
  EXPECT_EQ(check(plans, reads.patterns()), std::vector<std::string>{});
  auto const bound = execute(plans);
  for (std::size_t r = 0; r < plans.size(); ++r) {
    std::vector<std::int64_t> expected;
    for (std::int64_t i = 0; i < reads.owned[r]; ++i) expected.push_back(value_of(static_cast<Rank>(r), i));
    for (auto const& [source, item] : reads.ghosts(static_cast<Rank>(r)))
      expected.push_back(value_of(source, item));
    EXPECT_EQ(bound[r], expected) << "rank " << r;
  }
}

std::vector<Message> sent(std::vector<ExchangePlan> const& plans) {
  std::vector<Message> all;
  for (ExchangePlan const& plan : plans)
    for (Stage const& stage : plan.stages) all.insert(all.end(), stage.out.begin(), stage.out.end());
  return all;
}

/// Items that must enter another node: counted from the reads alone.
std::int64_t crossings(Reads const& reads, NodeMap const& nodes) {
  std::int64_t count = 0;
  for (std::size_t s = 0; s < reads.owned.size(); ++s)
    for (auto const& [item, to] : reads.receivers[s]) {
      std::set<int> entered;
      for (Rank t : to) entered.insert(nodes.node[at(t)]);
      entered.erase(nodes.node[s]);
      count += static_cast<std::int64_t>(entered.size());
    }
  return count;
}

class RandomPlans : public ::testing::TestWithParam<int> {};

TEST_P(RandomPlans, BringEveryGhostItsItem) {
  int const ranks = GetParam();
  for (unsigned seed = 0; seed < 20; ++seed) {
    Reads const reads = testing::random_reads(ranks, 100 * seed + static_cast<unsigned>(ranks));
    NodeMap const nodes = seed % 3 == 0 ? NodeMap::blocks(ranks, 1 + static_cast<int>(seed % 4))
                                        : testing::random_nodes(ranks, seed);
    for (Route route : routes)
      for (ReuseGuarantee reuse_guarantee :
           {ReuseGuarantee::reduction, ReuseGuarantee::credit, ReuseGuarantee::answer})
        for (bool apart : {false, true}) {
          SCOPED_TRACE(::testing::Message()
                       << name(route) << " " << name(reuse_guarantee) << " seed " << seed);
          expect_exchanged(
              reads, make_plans(route, reads.patterns(), nodes,
                                testing::varied(route, nodes, seed, {reuse_guarantee, Space::host, apart})));
        }
  }
}

TEST_P(RandomPlans, NodeAwareRoutesEnterANodeOnce) {
  int const ranks = GetParam();
  for (unsigned seed = 50; seed < 70; ++seed) {
    Reads const reads = testing::random_reads(ranks, seed);
    NodeMap const nodes = testing::random_nodes(ranks, seed);
    for (Route route : {Route::two_step, Route::three_step, Route::split, Route::leader}) {
      std::int64_t items = 0;
      std::map<std::pair<int, int>, int> pairs;
      std::map<std::pair<Rank, int>, int> from_rank;
      for (Message const& m :
           sent(make_plans(route, reads.patterns(), nodes, testing::varied(route, nodes, seed, {})))) {
        EXPECT_EQ(m.locality == Locality::network, !nodes.same_node(m.source, m.target));
        if (nodes.same_node(m.source, m.target)) continue;
        items += m.items;
        ++pairs[{nodes.node[at(m.source)], nodes.node[at(m.target)]}];
        ++from_rank[{m.source, nodes.node[at(m.target)]}];
      }
      EXPECT_EQ(items, crossings(reads, nodes)) << name(route) << " seed " << seed;
      if (route == Route::three_step) {
        for (auto const& [pair, count] : pairs) EXPECT_EQ(count, 1);
      }
      if (route == Route::two_step || route == Route::three_step) {
        for (auto const& [pair, count] : from_rank) EXPECT_EQ(count, 1);
      }
    }
  }
}

TEST_P(RandomPlans, OneRankAtATimeGivesTheSamePlan) {
  int const ranks = GetParam();
  Reads const reads = testing::random_reads(ranks, 7);
  NodeMap const nodes = testing::random_nodes(ranks, 3);
  for (Route route : routes) {
    PlanOptions const options{ReuseGuarantee::credit, Space::host, true};
    PlanSet all{options, reads.patterns(), make_plans(route, reads.patterns(), nodes, options)};
    PlanSet single{options, reads.patterns(), {}};
    for (Rank r = 0; r < ranks; ++r)
      single.plans.push_back(make_plan(route, reads.patterns(), nodes, r, options));
    EXPECT_EQ(write_plans(single), write_plans(all));
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, RandomPlans, ::testing::Range(1, 10));

/// source, target, items of the messages of one stage, all ranks.
std::vector<std::vector<std::int64_t>> messages(std::vector<ExchangePlan> const& plans, std::size_t stage) {
  std::vector<std::vector<std::int64_t>> all;
  for (ExchangePlan const& plan : plans)
    for (Message const& m : plan.stages.at(stage).out) all.push_back({m.source, m.target, m.items});
  return all;
}
using Table = std::vector<std::vector<std::int64_t>>;

// Figure 2.3: P1 brings its data to P0, P0 sends one message to P7, P7 redistributes.
TEST(ThreeStep, FigureOfThePaper) {
  Reads const reads = testing::figure();
  auto const plans = make_plans(Route::three_step, reads.patterns(), NodeMap::blocks(8, 4));
  ASSERT_EQ(plans[0].stages.size(), 4u);
  EXPECT_EQ(messages(plans, 0), (Table{{2, 3, 1}}));
  EXPECT_EQ(messages(plans, 1), (Table{{1, 0, 2}}));
  EXPECT_EQ(messages(plans, 2), (Table{{0, 7, 3}}));
  EXPECT_EQ(messages(plans, 3), (Table{{7, 4, 2}, {7, 5, 1}, {7, 6, 1}}));
  EXPECT_TRUE(plans[0].stages[0].after.empty());
  EXPECT_TRUE(plans[0].stages[1].after.empty());
  EXPECT_EQ(plans[0].stages[2].after, std::vector<StageId>{1});
  EXPECT_EQ(plans[0].stages[3].after, std::vector<StageId>{2});
  // P0 adds its own item to what P1 brought: one move from each.
  ASSERT_EQ(plans[0].stages[2].pack.size(), 2u);
  EXPECT_EQ(plans[0].stages[2].pack[0].from.buffer, 0);
  EXPECT_EQ(plans[0].stages[2].pack[0].from.first, 1);
}

// Figure 2.4: every process sends to the one at its own place on the other node.
TEST(TwoStep, FigureOfThePaper) {
  Reads const reads = testing::figure();
  auto const plans = make_plans(Route::two_step, reads.patterns(), NodeMap::blocks(8, 4));
  ASSERT_EQ(plans[0].stages.size(), 3u);
  EXPECT_EQ(messages(plans, 0), (Table{{2, 3, 1}}));
  EXPECT_EQ(messages(plans, 1), (Table{{0, 4, 1}, {1, 5, 2}}));
  EXPECT_EQ(messages(plans, 2), (Table{{4, 5, 1}, {5, 6, 1}, {5, 7, 2}, {5, 4, 1}}));
  EXPECT_TRUE(plans[0].stages[1].after.empty());
  EXPECT_EQ(plans[0].stages[2].after, std::vector<StageId>{1});
}

TEST(Direct, SendsEveryCopy) {
  Reads const reads = testing::figure();
  auto const plans = make_plans(Route::direct, reads.patterns(), NodeMap::blocks(8, 4));
  EXPECT_EQ(messages(plans, 0), (Table{{0, 4, 1}, {0, 5, 1}, {1, 4, 1}, {1, 6, 1}, {1, 7, 2}, {2, 3, 1}}));
  EXPECT_EQ(plans[1].items_sent(), 4);
  EXPECT_EQ(plans[4].items_received(), 2);
}

TEST(Direct, ItemsThatLieTogetherAreNotPacked) {
  Reads const reads = Reads({6, 2}).add(0, 2, {1}).add(0, 3, {1}).add(1, 0, {0}).add(0, 5, {1});
  auto plans = make_plans(Route::direct, reads.patterns(), NodeMap::blocks(2, 2));
  EXPECT_EQ(plans[0].buffers.size(), 2u);  // 2, 3 and 5 do not lie together
  EXPECT_EQ(plans[0].stages[0].pack.at(0).from.index, (std::vector<std::int32_t>{2, 3, 5}));
  EXPECT_EQ(plans[0].stages[0].out[0].to_first, 2);
  EXPECT_TRUE(plans[1].stages[0].unpack.empty());
  EXPECT_EQ(plans[1].buffers.size(), 1u);
  plans = make_plans(Route::direct, Reads({6, 2}).add(0, 2, {1}).add(0, 3, {1}).patterns(),
                     NodeMap::blocks(2, 2));
  EXPECT_EQ(plans[0].buffers.size(), 1u);
  EXPECT_EQ(plans[0].stages[0].out[0].from_first, 2);
}

TEST(Direct, APeriodicRankReadsItselfByAMove) {
  Reads const reads = Reads({5}).add(0, 0, {0}).add(0, 4, {0});
  for (Route route : routes) {
    auto const plans = make_plans(route, reads.patterns(), NodeMap::blocks(1, 1));
    expect_exchanged(reads, plans);
    EXPECT_TRUE(sent(plans).empty());
  }
}

// Every node talks to every other: 4 ranks share 4 partners, so nobody is idle and nobody has two.
TEST(ThreeStep, PairsKeepEveryRankActive) {
  std::vector<std::int64_t> const owned(20, 9);
  Reads reads(owned);
  for (Rank s = 0; s < 20; ++s)
    for (std::int32_t i = 0; i <= s % 7; ++i)
      for (Rank t = 0; t < 20; ++t)
        if (s / 4 != t / 4) reads.add(s, i, {t});
  std::map<Rank, int> sends, receives;
  for (Message const& m : sent(make_plans(Route::three_step, reads.patterns(), NodeMap::blocks(20, 4))))
    if (m.locality == Locality::network) ++sends[m.source], ++receives[m.target];
  for (Rank r = 0; r < 20; ++r) {
    EXPECT_EQ(sends[r], 1);
    EXPECT_EQ(receives[r], 1);
  }
}

// With one rank a node there is nobody to share with: the routes need no staging beyond the direct one's.
TEST(NodeAware, AloneOnANodeIsDirect) {
  Reads const reads = testing::random_reads(6, 5);
  auto const direct = make_plans(Route::direct, reads.patterns(), NodeMap::blocks(6, 1));
  for (Route route : {Route::two_step, Route::three_step, Route::split, Route::leader}) {
    auto const plans = make_plans(route, reads.patterns(), NodeMap::blocks(6, 1));
    for (std::size_t r = 0; r < 6; ++r) {
      EXPECT_EQ(plans[r].items_sent(), direct[r].items_sent());
      EXPECT_EQ(plans[r].buffers.size(), direct[r].buffers.size());
    }
  }
}

TEST(Reaches, TheFarthestBoundaryCrossed) {
  NodeMap nodes{{0, 0, 0, 0, 1}, {0, 0, 0, 1, 0}, {0, 0, -1, 2, 0}};
  Reads const reads = Reads({1, 1, 1, 1, 1}).add(0, 0, {1, 2, 3, 4});
  auto const plan = make_plan(Route::direct, reads.patterns(), nodes, 0);
  std::vector<Locality> locality;
  for (Message const& m : plan.stages[0].out) locality.push_back(m.locality);
  EXPECT_EQ(locality,
            (std::vector<Locality>{Locality::device, Locality::socket, Locality::node, Locality::network}));
}

TEST(Credits, ReturnOneEmptyMessageForEach) {
  Reads const reads = testing::figure();
  auto const plans =
      make_plans(Route::three_step, reads.patterns(), NodeMap::blocks(8, 4), {ReuseGuarantee::credit});
  ASSERT_EQ(plans[0].stages.size(), 5u);
  std::map<MessageId, Message> by_id;
  for (Message const& m : sent(plans)) EXPECT_TRUE(by_id.emplace(m.id, m).second);
  EXPECT_EQ(by_id.size(), 12u);
  for (auto const& [id, m] : by_id) {
    Message const& other = by_id.at(m.answer);
    EXPECT_EQ(other.answer, id);
    EXPECT_EQ(m.source, other.target);
    EXPECT_EQ(m.target, other.source);
    EXPECT_EQ(m.items == 0, m.reuse_guarantee == ReuseGuarantee::answer);
    EXPECT_EQ(m.items > 0, m.reuse_guarantee == ReuseGuarantee::credit);
  }
  for (std::size_t s = 1; s < 5; ++s) EXPECT_FALSE(plans[0].stages[s].after.empty());
}

// Ranks 1 and 2 send to each other: each message answers the other. Rank 0 hears nothing of rank 1, so it
// gets a credit from it.
TEST(Answers, AreMessagesOfTheOppositeDirectionOrCredits) {
  Reads const reads = Reads({2, 2, 2}).add(0, 1, {1}).add(1, 0, {2}).add(2, 0, {1});
  auto const plans =
      make_plans(Route::direct, reads.patterns(), NodeMap::blocks(3, 3), {ReuseGuarantee::answer});
  EXPECT_EQ(check(plans, reads.patterns()), std::vector<std::string>{});
  std::map<std::pair<Rank, Rank>, Message> by_ranks;
  for (Message const& m : sent(plans)) by_ranks[{m.source, m.target}] = m;
  ASSERT_EQ(by_ranks.size(), 4u);
  Message const there = by_ranks[{1, 2}], back = by_ranks[{2, 1}], alone = by_ranks[{0, 1}],
                credit = by_ranks[{1, 0}];
  EXPECT_EQ(there.reuse_guarantee, ReuseGuarantee::answer);
  EXPECT_EQ(there.answer, back.id);
  EXPECT_EQ(back.answer, there.id);
  EXPECT_EQ(alone.reuse_guarantee, ReuseGuarantee::credit);
  EXPECT_EQ(alone.answer, credit.id);
  EXPECT_EQ(credit.items, 0);
  EXPECT_TRUE(plans[0].stages[1].after.empty());  // nobody awaits a credit before it sends
  for (Buffer const& buffer : plans[1].buffers) EXPECT_EQ(buffer.epochs, 2);
}

// The ghosts of rank 7 are items 2 and 3 of rank 1; they are asked for the other way round.
TEST(Positions, GhostsLieWhereTheyAreAskedFor) {
  auto patterns = testing::figure().patterns();
  patterns[7].position = {1, 0};
  for (Route route : routes) {
    auto const plans =
        make_plans(route, patterns, NodeMap::blocks(8, 4), {ReuseGuarantee::answer, Space::host, true});
    EXPECT_EQ(check(plans, patterns), std::vector<std::string>{});
    EXPECT_EQ(execute(plans)[7], (std::vector<std::int64_t>{8000, 8001, 8002, 8003, 2003, 2002}));
    auto other = patterns;
    other[7].position = {};
    EXPECT_FALSE(check(plans, other).empty());
  }
}

TEST(Epochs, ReductionNeedsTwo) {
  auto const patterns = testing::figure().patterns();
  for (Buffer const& buffer : make_plan(Route::three_step, patterns, NodeMap::blocks(8, 4), 7).buffers)
    EXPECT_EQ(buffer.epochs, 2);
  for (Buffer const& buffer :
       make_plan(Route::three_step, patterns, NodeMap::blocks(8, 4), 7, {ReuseGuarantee::credit}).buffers)
    EXPECT_EQ(buffer.epochs, 1);
}

// Four ranks a node that share two GPUs: of each GPU the lowest alone sends to other nodes and hears of them.
TEST(ThreeStep, OneRankOfAGpuSpeaksForIt) {
  auto const patterns = testing::figure().add(5, 0, {0, 3}).patterns();
  NodeMap nodes = NodeMap::blocks(8, 4);
  auto const speakers = [&] {
    std::set<Rank> all;
    for (ExchangePlan const& plan : make_plans(Route::three_step, patterns, nodes))
      for (Stage const& stage : plan.stages)
        for (Message const& message : stage.out)
          if (!nodes.same_node(message.source, message.target)) all.insert({message.source, message.target});
    return all;
  };
  EXPECT_EQ(speakers(), (std::set<Rank>{0, 3, 4, 7}));  // who sends is not who hears
  nodes.device = {0, 0, 0, 0, 1, 1, 1, 1};
  EXPECT_EQ(speakers(), (std::set<Rank>{0, 4}));
  nodes.device = {1, 1, 0, 0, 0, 1, 0, 1};
  EXPECT_EQ(speakers(), (std::set<Rank>{0, 2, 4, 5}));
  EXPECT_EQ(check(make_plans(Route::three_step, patterns, nodes), patterns), std::vector<std::string>{});
}

TEST(Fingerprint, EqualOnAllRanksAndSensitiveToEverything) {
  Reads reads = testing::figure();
  NodeMap nodes = NodeMap::blocks(8, 4);
  auto const plans = make_plans(Route::direct, reads.patterns(), nodes);
  std::set<std::uint64_t> seen;
  for (ExchangePlan const& plan : plans) seen.insert(plan.fingerprint);
  EXPECT_EQ(seen.size(), 1u);
  PlanOptions options;
  seen.insert(fingerprint(Route::two_step, reads.patterns(), nodes, options));
  seen.insert(fingerprint(Route::direct, reads.patterns(), nodes, {ReuseGuarantee::credit}));
  seen.insert(
      fingerprint(Route::direct, reads.patterns(), nodes, {ReuseGuarantee::reduction, Space::device}));
  seen.insert(
      fingerprint(Route::direct, reads.patterns(), nodes, {ReuseGuarantee::reduction, Space::host, true}));
  seen.insert(fingerprint(Route::direct, reads.patterns(), NodeMap::blocks(8, 2), options));
  options.message_cap = 7;
  seen.insert(fingerprint(Route::direct, reads.patterns(), nodes, options));
  options.by_socket = true;
  seen.insert(fingerprint(Route::direct, reads.patterns(), nodes, options));
  options.dies.dies = 1;
  seen.insert(fingerprint(Route::direct, reads.patterns(), nodes, options));
  options.dies.links = {1};
  seen.insert(fingerprint(Route::direct, reads.patterns(), nodes, options));
  options.dies = {1, {}, {1}};
  seen.insert(fingerprint(Route::direct, reads.patterns(), nodes, options));
  options = {};
  auto turned = reads.patterns();
  testing::turn_ghosts_round(turned);
  seen.insert(fingerprint(Route::direct, turned, nodes, options));
  reads.add(3, 0, {0});
  seen.insert(fingerprint(Route::direct, reads.patterns(), nodes, options));
  EXPECT_EQ(seen.size(), 13u);
  // 64-bit FNV-1a, so that files written elsewhere can be compared: a fixed value for the smallest plan.
  EXPECT_EQ(fingerprint(Route::direct, {Pattern{0, {}, {0}, {}, {}}}, NodeMap::blocks(1, 1), options),
            0x2b481aab74bfa3c7u);
  EXPECT_EQ(fingerprint(Route::leader, {Pattern{0, {}, {0}, {}, {}}}, NodeMap::blocks(1, 1), options),
            0x2b481aab74bfa3c7u);
}

TEST(MakePlan, RefusesWhatDoesNotFit) {
  auto const good = testing::figure().patterns();
  NodeMap const nodes = NodeMap::blocks(8, 4);
  auto expect_refused = [](std::string const& part, auto&& make) {
    try {
      make();
      ADD_FAILURE() << "accepted: " << part;
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  expect_refused("8 patterns for 4 ranks", [&] { make_plans(Route::direct, good, NodeMap::blocks(4, 4)); });
  expect_refused("8 patterns for 1 rank (", [&] { make_plans(Route::direct, good, NodeMap::blocks(1, 1)); });
  expect_refused("there are no ranks", [&] { make_plans(Route::direct, {}, NodeMap{}); });
  expect_refused("rank 8", [&] { make_plan(Route::direct, good, nodes, 8); });
  expect_refused("rank -1", [&] { make_plan(Route::direct, good, nodes, -1); });
  auto turned = good;
  testing::turn_ghosts_round(turned);
  expect_refused("patterns[3].position: ghosts in an order of their own",
                 [&] { make_plans(Route::direct, turned, nodes); });
  expect_refused("route: 9 is none of its values", [&] { make_plans(static_cast<Route>(9), good, nodes); });
  expect_refused("options.reuse_guarantee: 7",
                 [&] { make_plans(Route::direct, good, nodes, {static_cast<ReuseGuarantee>(7)}); });
  expect_refused("options.space: 3", [&] {
    make_plans(Route::direct, good, nodes, {ReuseGuarantee::answer, static_cast<Space>(3)});
  });
  expect_refused("options.reuse_guarantee: 'promise'",
                 [&] { make_plans(Route::direct, good, nodes, {ReuseGuarantee::promise}); });
  auto bad = good;
  bad[1].item[0] = 3;
  expect_refused("patterns[1].item[1]", [&] { make_plans(Route::direct, bad, nodes); });
  bad = good;
  bad[1].receiver[2] = 8;
  expect_refused("patterns[1].receiver[2]: 8", [&] { make_plans(Route::direct, bad, nodes); });
  bad = good;
  bad[0].owned = 0x7fffffff;
  bad[4].owned = 0x7fffffff;
  expect_refused("more ranks", [&] { make_plans(Route::direct, bad, nodes); });
}

}  // namespace
}  // namespace hostless
