// Rounds are carried out on plain vectors: items are packed, moved from part to part and unpacked, and every
// ghost must end with the identity of the item that its plan promises.
#include "exchange/message_rounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "hostless/plan/routes.hpp"
#include "plan_cases.hpp"

namespace hostless {
namespace {

using testing::at;
using testing::Reads;
using testing::routes;
using testing::value_of;

struct RankMessages {
  std::vector<MessageRound> rounds;
  std::vector<std::int32_t> rows;
  std::vector<std::int64_t> vector, staging;  // vector: from the first ghost of a lower rank on
  std::int64_t below = 0;
  std::int64_t& item(MessageItem const& i) {
    return i.staging != 0 ? staging.at(at(i.vector_offset)) : vector.at(at(i.vector_offset + below));
  }
};

std::vector<RankMessages> ranks_of(std::vector<ExchangePlan> const& plans) {
  std::vector<RankMessages> all(plans.size());
  run_on_threads(static_cast<int>(plans.size()), [&](Group& group) {
    ExchangePlan const& plan = plans[at(group.rank())];
    PeerCopies const copies = peer_copies(plan, group);
    RankMessages& rank = all[at(group.rank())];
    rank.rounds = message_rounds(copies, group);
    rank.rows = rows_sent(copies);
    rank.vector.assign(at(plan.owned + plan.ghosts), -1);
    rank.staging.assign(at(copies.staging), -1);
    rank.below = plan.ghosts_below;
    for (std::int64_t i = 0; i < plan.owned; ++i) rank.vector[at(rank.below + i)] = value_of(plan.rank, i);
  });
  return all;
}

void deliver(std::vector<RankMessages>& ranks, std::size_t round) {
  std::vector<std::vector<std::int64_t>> packed(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (MessageItem const& item : ranks[r].rounds.at(round).from) packed[r].push_back(ranks[r].item(item));
  std::int64_t most_in = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    MessageRound const& here = ranks[r].rounds[round];
    std::int64_t first = 0;
    for (MessagePart const& part : here.in) {
      EXPECT_EQ(part.first, first) << "parts follow each other";
      EXPECT_GT(part.items, 0);
      first += part.items;
      auto const& there = ranks[at(part.rank)].rounds[round].out;
      auto const sent = std::find_if(there.begin(), there.end(),
                                     [&](MessagePart const& out) { return out.rank == static_cast<int>(r); });
      ASSERT_NE(sent, there.end()) << "rank " << part.rank << " sends nothing to rank " << r;
      ASSERT_EQ(sent->items, part.items);
      EXPECT_EQ(sent->there, part.first) << "rank " << part.rank << " to rank " << r;
      for (std::int64_t k = 0; k < part.items; ++k) {
        MessageItem const to = here.to[at(part.first + k)];
        if (here.in_place) {
          EXPECT_EQ(to,
                    (MessageItem{here.to[at(part.first)].vector_offset + static_cast<std::int32_t>(k), 0}));
        }
        ranks[r].item(to) = packed[at(part.rank)][at(sent->first + k)];
      }
    }
    EXPECT_EQ(at(first), here.to.size());
    most_in = std::max(most_in, first);
  }
  for (RankMessages const& rank : ranks) EXPECT_EQ(rank.rounds[round].most_in, most_in);
}

class Ranks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, Ranks, ::testing::Range(1, 8));

TEST_P(Ranks, EveryGhostArrives) {
  int const count = GetParam();
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Reads const reads = testing::random_reads(count, 100 * static_cast<unsigned>(count) + seed);
    NodeMap const nodes = NodeMap::blocks(count, 1 + static_cast<int>(seed) % 3);
    PlanOptions options;
    for (Route route : routes) {
      SCOPED_TRACE(std::string(name(route)) + ", seed " + std::to_string(seed));
      auto const plans = make_plans(route, reads.patterns(), nodes, options);
      std::vector<RankMessages> ranks = ranks_of(plans);
      for (std::size_t round = 0; round < ranks[0].rounds.size(); ++round) deliver(ranks, round);
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        auto const ghosts = reads.ghosts(static_cast<Rank>(r));
        for (std::size_t g = 0; g < ghosts.size(); ++g)
          EXPECT_EQ(ranks[r].vector[at(plans[r].vector_offset(plans[r].owned + static_cast<std::int64_t>(g)) +
                                       ranks[r].below)],
                    value_of(ghosts[g].first, ghosts[g].second))
              << "ghost " << g << " of rank " << r;
        if (route != Route::direct) continue;
        ASSERT_EQ(ranks[r].rounds.size(), 1u);
        EXPECT_TRUE(ranks[r].rounds[0].in_place) << "ghosts of a rank lie together in a direct plan";
      }
    }
  }
}

// Rank 0 reads an item of its own; rank 1 has two ghosts below its rows, at offsets -2 and -1.
TEST(MessageRounds, OfADirectPlan) {
  Reads const reads = Reads({4, 2, 3}).add(0, 1, {0, 1}).add(0, 3, {1, 2}).add(2, 0, {1});
  auto const ranks = ranks_of(make_plans(Route::direct, reads.patterns(), NodeMap::blocks(3, 2)));
  MessageRound const& first = ranks[0].rounds.at(0);
  EXPECT_EQ(first.from, (std::vector<MessageItem>{{1, 0}, {1, 0}, {3, 0}, {3, 0}}));
  EXPECT_EQ(first.out, (std::vector<MessagePart>{{0, 0, 1}, {1, 1, 2}, {2, 3, 1}}));
  EXPECT_EQ(ranks[0].rows, (std::vector<std::int32_t>{1, 3}));
  MessageRound const& second = ranks[1].rounds.at(0);
  EXPECT_EQ(second.in, (std::vector<MessagePart>{{0, 0, 2}, {2, 2, 1}}));
  EXPECT_EQ(second.to, (std::vector<MessageItem>{{-2, 0}, {-1, 0}, {2, 0}}));
  EXPECT_TRUE(second.out.empty());
  EXPECT_TRUE(ranks[1].rows.empty());
}

// What is passed on lands in staging memory first, which no message can fill in place.
TEST(MessageRounds, OfTwoSteps) {
  auto const ranks =
      ranks_of(make_plans(Route::two_step, testing::figure().patterns(), NodeMap::blocks(8, 4)));
  EXPECT_FALSE(ranks[4].rounds.at(0).in_place);
  EXPECT_EQ(ranks[4].rounds[0].to, (std::vector<MessageItem>{{0, 1}}));
  EXPECT_EQ(ranks[4].rounds.at(1).from, (std::vector<MessageItem>{{0, 1}, {0, 1}}));
  EXPECT_TRUE(ranks[4].rows.empty()) << "it owns nothing that others read";
}

}  // namespace
}  // namespace hostless
