#include "transport/composite/composite_lists.hpp"

#include <algorithm>

namespace hostless::gpu {

CompositeLists::CompositeLists(CompositeNodes const& nodes, std::vector<std::uint8_t> const& speaks,
                               std::int64_t bytes_a_rank)
    : nodes_(nodes), agents_(nodes), bytes_a_rank_(bytes_a_rank), member_(nodes.node.size(), -1) {
  for (auto& all : agents_.ranks) {
    std::vector<int> some;
    for (int const rank : all)
      if (speaks[static_cast<std::size_t>(rank)] != 0) some.push_back(rank);
    if (some.empty()) some.push_back(all.front());
    all = some;
    members_.insert(members_.end(), all.begin(), all.end());
  }
  std::sort(members_.begin(), members_.end());
  for (std::size_t k = 0; k < members_.size(); ++k)
    member_[static_cast<std::size_t>(members_[k])] = static_cast<int>(k);
}

std::vector<NodeList> CompositeLists::arrivals(int agent) const {
  std::vector<NodeList> all;
  int const here = node_of(agent);
  for (int node = 0; node < count(); ++node)
    if (node != here && agents_.agent(here, node) == agent)
      all.push_back({node, agents_.agent(node, here), 0, list_bytes(node)});
  std::sort(all.begin(), all.end(), [](NodeList const& a, NodeList const& b) { return a.source < b.source; });
  std::int64_t next = 0;
  for (NodeList& one : all) {
    one.first = next;
    next += one.bytes;
  }
  return all;
}

std::int64_t CompositeLists::arriving_bytes(int agent) const {
  auto const all = arrivals(agent);
  return all.empty() ? 0 : all.back().first + all.back().bytes;
}

std::int64_t CompositeLists::handed_at(int rank, int agent) const {
  std::int64_t next = 0;
  for (int const other : nodes_.ranks[static_cast<std::size_t>(node_of(rank))])
    if (other < agent && other != rank && member(other) >= 0) next += arriving_bytes(other);
  return next;
}

StreamRound CompositeLists::between(int rank) const {
  StreamRound round;
  for (int const other : members_) round.most_in_bytes = std::max(round.most_in_bytes, arriving_bytes(other));
  if (member(rank) < 0) return round;
  int const here = node_of(rank);
  round.out_bytes = list_bytes(here);
  for (NodeList const& list : arrivals(rank)) {
    StreamPart out{member(list.source), 0, list_bytes(here), 0, 0};
    for (NodeList const& there : arrivals(list.source))
      if (there.node == here) out.there = there.first;
    round.out.push_back(out);
    round.in.push_back({member(list.source), list.first, list.bytes, 0, 0});
  }
  round.in_bytes = arriving_bytes(rank);
  return round;
}

StreamRound CompositeLists::inside(int rank) const {
  StreamRound round;
  auto const& all = nodes_.ranks[static_cast<std::size_t>(node_of(rank))];
  auto const local = [&](int one) { return nodes_.local[static_cast<std::size_t>(one)]; };
  auto const brings = [&](int one) { return member(one) >= 0 ? arriving_bytes(one) : 0; };
  for (int const to : all) {
    std::int64_t in_bytes = 0;
    for (int const from : all)
      if (from != to) in_bytes += brings(from);
    round.most_in_bytes = std::max(round.most_in_bytes, in_bytes);
    if (to == rank) {
      round.in_bytes = in_bytes;
    } else if (brings(rank) != 0) {
      round.out.push_back({local(to), 0, brings(rank), handed_at(to, rank), 0});
    }
  }
  for (int const from : all)
    if (from != rank && brings(from) != 0)
      round.in.push_back({local(from), handed_at(rank, from), brings(from), 0, 0});
  round.out_bytes = brings(rank);
  return round;
}

}  // namespace hostless::gpu
