#include <algorithm>
#include <map>

#include "plan/index.hpp"
#include "plan/wire_parts.hpp"

namespace hostless {
namespace {

/// What one node needs of another, every item once, cut into pieces.
struct Cut {
  std::vector<Item> items;  // rising
  std::int64_t piece = 1;   // items of a piece; the last has what is left
  std::size_t first = 0;    // number of its first piece
};

struct Piece {
  NodePair nodes;
  std::int64_t items = 0;
  Rank sender = 0, receiver = 0;
};

/// Lines 11 to 17 of algorithm 1, for the node that receives.
std::int64_t cap_of(std::int64_t largest, std::int64_t total, std::int64_t ranks, std::int64_t message_cap) {
  if (largest < message_cap) return largest;
  bool const too_many =
      total / message_cap > ranks || (total / message_cap == ranks && total % message_cap > 0);
  return too_many ? (total + ranks - 1) / ranks : message_cap;
}

using Cuts = std::map<NodePair, Cut>;

Cuts volumes(std::vector<Asked> const& asked, NodeMap const& nodes) {
  Cuts cuts;
  for (Rank s = 0; s < nodes.ranks(); ++s)
    for (auto const& [node, items] : asked[at(s)].by_node)
      for (std::int32_t const item : items) cuts[{nodes.node[at(s)], node}].items.push_back({s, item});
  return cuts;
}

std::vector<Piece> cut(Cuts& cuts, std::vector<std::vector<Rank>> const& members, std::int64_t message_cap) {
  std::vector<std::int64_t> largest(members.size(), 0), total(members.size(), 0);
  for (auto const& [pair, whole] : cuts) {
    std::int64_t const items = std::ssize(whole.items);
    largest[at(pair.second)] = std::max(largest[at(pair.second)], items);
    total[at(pair.second)] += items;
  }
  std::vector<Piece> pieces;
  for (auto& [pair, whole] : cuts) {
    std::size_t const to = at(pair.second);
    whole.piece = cap_of(largest[to], total[to], std::ssize(members[to]), message_cap);
    whole.first = pieces.size();
    for (std::int64_t left = std::ssize(whole.items); left > 0; left -= whole.piece)
      pieces.push_back({pair, std::min(left, whole.piece)});
  }
  return pieces;
}

/// Line 18: the largest first, received from the first rank of a node on, sent from its last one down.
void deal(std::vector<Piece>& pieces, std::vector<std::vector<Rank>> const& members) {
  std::vector<std::size_t> order(pieces.size()), sent(members.size(), 0), received(members.size(), 0);
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return pieces[a].items > pieces[b].items; });
  for (std::size_t const k : order) {
    auto const [from, to] = pieces[k].nodes;
    auto const &senders = members[at(from)], &receivers = members[at(to)];
    pieces[k].sender = senders[senders.size() - 1 - sent[at(from)]++ % senders.size()];
    pieces[k].receiver = receivers[received[at(to)]++ % receivers.size()];
  }
}

}  // namespace

void add_split(Collector& collect, std::vector<Asked> const& asked, NodeMap const& nodes,
               std::int64_t message_cap) {
  auto const members = members_of(nodes);
  Cuts cuts = volumes(asked, nodes);
  std::vector<Piece> pieces = cut(cuts, members, message_cap);
  deal(pieces, members);
  for (auto const& [pair, whole] : cuts)
    for (std::size_t k = 0; k < whole.items.size(); ++k) {
      Item const& item = whole.items[k];
      Piece const& piece = pieces[whole.first + k / at(whole.piece)];
      if (piece.sender != item.source) collect.add(Step::gather, item.source, piece.sender, item);
      collect.add(Step::network, piece.sender, piece.receiver, item);
    }
  for (Rank s = 0; s < nodes.ranks(); ++s)
    for (auto const& [t, items] : asked[at(s)].by_rank) {
      if (nodes.same_node(s, t)) continue;
      Cut const& whole = cuts.at({nodes.node[at(s)], nodes.node[at(t)]});
      for (std::int32_t const number : items) {
        Item const item{s, number};
        auto const position =
            std::lower_bound(whole.items.begin(), whole.items.end(), item) - whole.items.begin();
        Rank const via = pieces[whole.first + at(position / whole.piece)].receiver;
        if (via != t) collect.add(Step::redistribute, via, t, item);
      }
    }
}

}  // namespace hostless
