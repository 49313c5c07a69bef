#include "hostless/model/exchange_symbols.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "hostless/base/error.hpp"

namespace hostless {
namespace {

/// What a node sends, from all of its ranks.
struct NodeTotals {
  double bytes = 0, once = 0;  // of each receiver; of each receiving node
  struct To {
    double bytes = 0, messages = 0;
  };
  std::map<int, To> to;  // by node
};

// Adds a rank's messages; raises `most` to its bytes, messages and nodes.
void add_rank(Pattern const& pattern, NodeMap const& nodes, Rank rank, double bytes_per_item,
              NodeTotals& total, ExchangeSymbols& most) {
  std::map<Rank, double> to;
  std::set<int> reached;
  for (std::size_t k = 0; k < pattern.item.size(); ++k) {
    std::set<int> of_item;
    for (auto at = pattern.first[k]; at < pattern.first[k + 1]; ++at) {
      Rank const receiver = pattern.receiver[static_cast<std::size_t>(at)];
      if (nodes.same_node(rank, receiver)) continue;
      to[receiver] += bytes_per_item;
      of_item.insert(nodes.node[static_cast<std::size_t>(receiver)]);
    }
    total.once += bytes_per_item * static_cast<double>(of_item.size());
  }
  double sent = 0;
  for (auto const& [receiver, bytes] : to) {
    int const node = nodes.node[static_cast<std::size_t>(receiver)];
    sent += bytes;
    total.to[node].bytes += bytes;
    total.to[node].messages += 1;
    reached.insert(node);
  }
  total.bytes += sent;
  most.s_proc = std::max(most.s_proc, sent);
  most.m_proc = std::max(most.m_proc, static_cast<double>(to.size()));
  most.m_proc_to_node = std::max(most.m_proc_to_node, static_cast<double>(reached.size()));
}

}  // namespace

ExchangeSymbols symbols_of(std::vector<Pattern> const& patterns, NodeMap const& nodes,
                           double bytes_per_item) {
  if (static_cast<int>(patterns.size()) != nodes.ranks())
    throw Error(ErrorCode::usage,
                fmt::format("{} patterns and {} ranks on nodes (each rank has one pattern). Pass as many.",
                            patterns.size(), nodes.ranks()));
  ExchangeSymbols found;
  std::vector<NodeTotals> totals(static_cast<std::size_t>(nodes.nodes()));
  for (Rank rank = 0; rank < nodes.ranks(); ++rank) {
    auto const at = static_cast<std::size_t>(rank);
    add_rank(patterns[at], nodes, rank, bytes_per_item, totals[static_cast<std::size_t>(nodes.node[at])],
             found);
  }
  for (NodeTotals const& total : totals) {
    if (total.bytes > found.s_node) found.s_node = total.bytes, found.kept = total.once / total.bytes;
    found.m_node = std::max(found.m_node, static_cast<double>(total.to.size()));
    for (auto const& [node, to] : total.to) {
      found.s_node_to_node = std::max(found.s_node_to_node, to.bytes);
      found.m_node_to_node = std::max(found.m_node_to_node, to.messages);
    }
  }
  return found;
}

}  // namespace hostless
