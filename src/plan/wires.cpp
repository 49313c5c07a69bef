#include "plan/wires.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/index.hpp"
#include "plan/wire_parts.hpp"

namespace hostless {
namespace {

Asked regroup(Rank source, Pattern const& pattern, NodeMap const& nodes) {
  Asked asked;
  for (std::size_t k = 0; k < pattern.item.size(); ++k)
    for (std::int64_t j = pattern.first[k]; j < pattern.first[k + 1]; ++j) {
      Rank const receiver = pattern.receiver[static_cast<std::size_t>(j)];
      if (receiver == source) continue;
      asked.by_rank[receiver].push_back(pattern.item[k]);
      if (nodes.same_node(source, receiver)) continue;
      auto& once = asked.by_node[nodes.node[at(receiver)]];
      if (once.empty() || once.back() != pattern.item[k]) once.push_back(pattern.item[k]);
    }
  return asked;
}

/// Spreads a node's partner nodes over its ranks: the partner with most items first, each to the rank that
/// has least so far, so that no rank has two partners while another has none.
class Spread {
 public:
  explicit Spread(std::vector<Rank> ranks) : ranks_(std::move(ranks)), load_(ranks_.size(), {0, 0}) {}
  Rank next(std::int64_t items) {
    auto const least = std::min_element(load_.begin(), load_.end());
    ++least->first;
    least->second += items;
    return ranks_[static_cast<std::size_t>(least - load_.begin())];
  }

 private:
  std::vector<Rank> ranks_;
  std::vector<std::pair<std::int64_t, std::int64_t>> load_;  // partners, then items
};

/// The rank that sends for an ordered pair of nodes, and the rank that receives.
struct Pairing {
  std::map<NodePair, std::pair<Rank, Rank>> ranks;
};

/// Of ranks that share a GPU the lowest alone: a library that connects GPUs takes one rank of each.
std::vector<Rank> speakers_of(std::vector<Rank> const& ranks, NodeMap const& nodes) {
  std::vector<Rank> some;
  for (Rank const rank : ranks) {
    int const device = nodes.device[at(rank)];
    auto const shares = [&](Rank other) { return device >= 0 && nodes.device[at(other)] == device; };
    if (std::none_of(some.begin(), some.end(), shares)) some.push_back(rank);
  }
  return some;
}

Pairing pair_nodes(std::vector<Asked> const& asked, NodeMap const& nodes, ItemWeights const& weights) {
  std::map<NodePair, std::int64_t> volume;
  for (Rank s = 0; s < nodes.ranks(); ++s)
    for (auto const& [node, items] : asked[at(s)].by_node)
      for (std::int32_t const item : items)
        volume[{nodes.node[at(s)], node}] += weights.empty() ? 1 : weights[at(s)][at(item)];
  std::vector<std::pair<NodePair, std::int64_t>> order(volume.begin(), volume.end());
  std::stable_sort(order.begin(), order.end(),
                   [](auto const& a, auto const& b) { return a.second > b.second; });
  std::vector<Spread> senders, receivers;
  for (auto const& all : members_of(nodes)) {
    std::vector<Rank> ranks = speakers_of(all, nodes);
    senders.emplace_back(ranks);
    // From the other end, as in figure 2.3: a rank that sends for its node is the last one to receive for it.
    std::reverse(ranks.begin(), ranks.end());
    receivers.emplace_back(ranks);
  }
  Pairing pairing;
  for (auto const& [pair, items] : order) {
    Rank const sender = senders[at(pair.first)].next(items);
    pairing.ranks[pair] = {sender, receivers[at(pair.second)].next(items)};
  }
  return pairing;
}

/// The paired rank of `source` on another node: same place in the list of the node's ranks (figure 2.4).
class SamePosition {
 public:
  explicit SamePosition(NodeMap const& nodes)
      : members_(members_of(nodes)), position_(positions_of(members_, nodes.ranks())) {}
  Rank on(int node, Rank source) const {
    auto const& ranks = members_[at(node)];
    return ranks[position_[at(source)] % ranks.size()];
  }

 private:
  std::vector<std::vector<Rank>> members_;
  std::vector<std::size_t> position_;
};

void add_two_step(Collector& collect, std::vector<Asked> const& asked, NodeMap const& nodes) {
  SamePosition const same(nodes);
  for (Rank s = 0; s < nodes.ranks(); ++s) {
    for (auto const& [node, items] : asked[at(s)].by_node)
      collect.add(Step::network, s, same.on(node, s), s, items);
    for (auto const& [t, items] : asked[at(s)].by_rank) {
      if (nodes.same_node(s, t)) continue;
      Rank const via = same.on(nodes.node[at(t)], s);
      if (via != t) collect.add(Step::redistribute, via, t, s, items);
    }
  }
}

/// Who collects on a socket for a node: the rank that sends there, if it is of this socket, else one of the
/// socket's ranks, another one for the next node.
class SocketCollectors {
 public:
  explicit SocketCollectors(NodeMap const& nodes) : nodes_(nodes) {
    for (Rank r = 0; r < nodes.ranks(); ++r) ranks_[socket_of(r)].push_back(r);
  }
  Rank of(Rank source, Rank sender, int node) const {
    if (socket_of(source) == socket_of(sender)) return sender;
    auto const& ranks = ranks_.at(socket_of(source));
    return ranks[at(node) % ranks.size()];
  }

 private:
  std::pair<int, int> socket_of(Rank rank) const { return {nodes_.node[at(rank)], nodes_.socket[at(rank)]}; }
  NodeMap const& nodes_;
  std::map<std::pair<int, int>, std::vector<Rank>> ranks_;
};

void add_three_step(Collector& collect, std::vector<Asked> const& asked, NodeMap const& nodes, bool by_socket,
                    ItemWeights const& weights) {
  SocketCollectors const collectors(nodes);
  Pairing const pairing = pair_nodes(asked, nodes, weights);
  for (Rank s = 0; s < nodes.ranks(); ++s) {
    int const here = nodes.node[at(s)];
    for (auto const& [node, items] : asked[at(s)].by_node) {
      auto const [sender, receiver] = pairing.ranks.at({here, node});
      Rank const via = by_socket ? collectors.of(s, sender, node) : s;
      if (via != s) collect.add(Step::collect, s, via, s, items);
      if (via != sender) collect.add(Step::gather, via, sender, s, items);
      collect.add(Step::network, sender, receiver, s, items);
    }
    for (auto const& [t, items] : asked[at(s)].by_rank) {
      if (nodes.same_node(s, t)) continue;
      Rank const via = pairing.ranks.at({here, nodes.node[at(t)]}).second;
      if (via != t) collect.add(Step::redistribute, via, t, s, items);
    }
  }
}

}  // namespace

std::vector<std::vector<Rank>> members_of(NodeMap const& nodes) {
  std::vector<std::vector<Rank>> members(at(nodes.nodes()));
  for (Rank r = 0; r < nodes.ranks(); ++r) members[at(nodes.node[at(r)])].push_back(r);
  return members;
}

std::vector<std::size_t> positions_of(std::vector<std::vector<Rank>> const& members, Rank ranks) {
  std::vector<std::size_t> position(at(ranks));
  for (auto const& list : members)
    for (std::size_t k = 0; k < list.size(); ++k) position[at(list[k])] = k;
  return position;
}

std::vector<Wire> wires(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes,
                        PlanOptions const& options, ItemWeights const& weights) {
  Collector collect;
  if (route == Route::leader) {
    add_leader(collect, patterns, nodes, options.dies);
    return collect.take();
  }
  std::vector<Asked> asked;
  for (Rank s = 0; s < nodes.ranks(); ++s) asked.push_back(regroup(s, patterns[at(s)], nodes));
  for (Rank s = 0; s < nodes.ranks(); ++s)
    for (auto const& [t, items] : asked[at(s)].by_rank)
      if (route == Route::direct || nodes.same_node(s, t)) collect.add(Step::near, s, t, s, items);
  if (route == Route::two_step) add_two_step(collect, asked, nodes);
  if (route == Route::three_step) add_three_step(collect, asked, nodes, options.by_socket, weights);
  if (route == Route::split) add_split(collect, asked, nodes, options.message_cap);
  return collect.take();
}

}  // namespace hostless
