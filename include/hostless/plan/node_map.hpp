#pragma once

#include <string>
#include <vector>

namespace hostless {

using Rank = int;

/// Where every rank runs: declared by the user (`--ranks-per-node`) or found by the machine layer. Plain
/// data.
struct NodeMap {
  std::vector<int> node;    ///< [ranks] node of each rank, 0-based and dense
  std::vector<int> socket;  ///< [ranks] socket inside the node
  std::vector<int> device;  ///< [ranks] device inside the node, -1 for a rank on the processor

  int ranks() const { return static_cast<int>(node.size()); }
  int nodes() const;
  std::vector<Rank> ranks_of(int which) const;
  bool same_node(Rank a, Rank b) const {
    return node[static_cast<std::size_t>(a)] == node[static_cast<std::size_t>(b)];
  }

  /// Ranks 0 .. k-1 on node 0, the next k on node 1, and so on.
  /// Errors  usage  ranks < 1 or per_node < 1
  static NodeMap blocks(int ranks, int per_node);
};

}  // namespace hostless
