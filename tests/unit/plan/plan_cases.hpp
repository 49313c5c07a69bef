#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"
#include "hostless/plan/routes.hpp"

namespace hostless::testing {

inline constexpr auto const& routes = all_routes;
inline std::size_t at(std::int64_t k) { return static_cast<std::size_t>(k); }
/// Tells every item of every rank apart.
inline std::int64_t value_of(Rank source, std::int64_t item) { return 1000 * (source + 1) + item; }

/// Who reads which item of whom, in the plainest form: the oracle's own view.
struct Reads {
  std::vector<std::int64_t> owned;                                // [ranks]
  std::vector<std::map<std::int32_t, std::set<Rank>>> receivers;  // [ranks] item -> receivers

  explicit Reads(std::vector<std::int64_t> items) : owned(std::move(items)), receivers(owned.size()) {}
  Reads& add(Rank source, std::int32_t item, std::set<Rank> const& to) {
    receivers[static_cast<std::size_t>(source)][item].insert(to.begin(), to.end());
    return *this;
  }
  std::vector<Pattern> patterns() const {
    std::vector<Pattern> all;
    for (std::size_t r = 0; r < owned.size(); ++r) {
      Pattern pattern;
      pattern.owned = owned[r];
      pattern.first.push_back(0);
      for (auto const& [item, to] : receivers[r]) {
        pattern.item.push_back(item);
        pattern.receiver.insert(pattern.receiver.end(), to.begin(), to.end());
        pattern.first.push_back(static_cast<std::int64_t>(pattern.receiver.size()));
      }
      all.push_back(pattern);
    }
    return all;
  }
  /// Ghosts of a rank by (source, item).
  std::vector<std::pair<Rank, std::int32_t>> ghosts(Rank rank) const {
    std::vector<std::pair<Rank, std::int32_t>> all;
    for (std::size_t s = 0; s < owned.size(); ++s)
      for (auto const& [item, to] : receivers[s])
        if (to.count(rank)) all.emplace_back(static_cast<Rank>(s), item);
    return all;
  }
};

/// Each stage of these plans receives first and sends in a stage that waits for it: two ranks that read each
/// other wait for ever.
inline void receive_before_sending(std::vector<ExchangePlan>& plans) {
  for (ExchangePlan& plan : plans) {
    Stage sends;
    sends.id = 1;
    sends.after = {0};
    sends.out.swap(plan.stages[0].out);
    plan.stages.push_back(sends);
  }
}

/// Gives the ghosts of every rank an order of their own: the last one first.
inline void turn_ghosts_round(std::vector<Pattern>& patterns) {
  std::vector<std::int32_t> ghosts(patterns.size(), 0);
  for (Pattern const& pattern : patterns)
    for (Rank const receiver : pattern.receiver) ++ghosts[at(receiver)];
  for (std::size_t r = 0; r < patterns.size(); ++r)
    for (std::int32_t g = ghosts[r] - 1; g >= 0; --g) patterns[r].position.push_back(g);
}

/// Owned items 0 to `most`, some ranks empty, some items read by their owner.
inline Reads random_reads(int ranks, unsigned seed, int most = 20) {
  std::mt19937 random(seed);
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<std::int64_t> owned;
  for (int r = 0; r < ranks; ++r) owned.push_back(below(4) == 0 ? 0 : 3 * below(most / 3 + 1));
  Reads reads(owned);
  int const density = 1 + below(6);
  for (Rank s = 0; s < ranks; ++s)
    for (std::int32_t i = 0; i < owned[static_cast<std::size_t>(s)]; ++i)
      for (Rank t = 0; t < ranks; ++t)
        if (below(density + (s == t ? 6 : 0)) == 0) reads.add(s, i, {t});
  return reads;
}

/// Ranks spread over nodes at random, in no order; nodes are dense, sockets and devices random.
inline NodeMap random_nodes(int ranks, unsigned seed) {
  std::mt19937 random(seed);
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int const nodes = 1 + below(ranks);
  NodeMap map;
  for (int r = 0; r < ranks; ++r) {
    map.node.push_back(r < nodes ? r : below(nodes));
    map.socket.push_back(below(2));
    map.device.push_back(below(3) - 1);
  }
  std::shuffle(map.node.begin(), map.node.end(), random);
  return map;
}

/// What a route can be told beside these options, from a number.
inline PlanOptions varied(Route route, NodeMap const& nodes, unsigned seed, PlanOptions options) {
  std::mt19937 random(seed);
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  if (route == Route::split && below(4) > 0) options.message_cap = 1 + below(6);
  if (route == Route::three_step) options.by_socket = below(2) == 0;
  if (route == Route::leader && below(3) > 0) {
    options.dies.dies = nodes.ranks();
    for (int k = 0; k < nodes.ranks() * nodes.ranks(); ++k) {
      options.dies.links.push_back(std::max(0, below(4) - 2));
      options.dies.hops.push_back(below(4));
    }
  }
  return options;
}

/// Figure 2.3 of paper 004: ranks 0 to 3 on node 0, 4 to 7 on node 1. P0 and P1 both hold data for node 1;
/// P1's item 2 goes to three of its ranks, and P2 to a neighbour on the node.
inline Reads figure() {
  return Reads({4, 4, 4, 4, 4, 4, 4, 4}).add(0, 1, {4, 5}).add(1, 2, {4, 6, 7}).add(1, 3, {7}).add(2, 0, {3});
}

}  // namespace hostless::testing
