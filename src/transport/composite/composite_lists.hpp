#pragma once
// Who carries a sum between nodes, and on inside them, where a gather inside each node comes first: an agent of every node for
// every other one, which sends it the list of what its node has said and hands on to its node what it is sent.

#include <cstdint>
#include <vector>

#include "transport/composite/composite_nodes.hpp"
#include "transport/stream/stream_setup.hpp"

namespace hostless::gpu {

/// What a rank's node is sent of another node.
struct NodeList {
  int node = 0, source = 0;           ///< of all ranks, the agent that sends it
  std::int64_t first = 0, bytes = 0;  ///< among those that the same agent here is sent
};

class CompositeLists {
 public:
  /// speaks: [ranks] whether a rank has messages between nodes, so that it may be an agent. Where none of a node has, its
  /// lowest is. bytes_a_rank: of what a rank says at most.
  CompositeLists(CompositeNodes const& nodes, std::vector<std::uint8_t> const& speaks,
                 std::int64_t bytes_a_rank);

  /// Agents of all nodes, rising.
  std::vector<int> const& members() const { return members_; }
  int agent(int of, int other) const { return agents_.agent(of, other); }
  /// What an agent is sent, by source.
  std::vector<NodeList> arrivals(int agent) const;
  std::int64_t arriving_bytes(int agent) const;
  /// The first byte of what `agent` hands on among all that is handed to `rank`, of the same node; by rank.
  std::int64_t handed_at(int rank, int agent) const;
  /// Its number among the members; -1: it is none.
  int member(int rank) const { return member_[static_cast<std::size_t>(rank)]; }
  /// Between agents, by numbers of members.
  StreamRound between(int rank) const;
  /// Inside the node, by numbers in it.
  StreamRound inside(int rank) const;

 private:
  std::int64_t list_bytes(int node) const {
    return bytes_a_rank_ * static_cast<std::int64_t>(nodes_.ranks[static_cast<std::size_t>(node)].size());
  }
  int node_of(int rank) const { return nodes_.node[static_cast<std::size_t>(rank)]; }
  int count() const { return static_cast<int>(nodes_.ranks.size()); }

  CompositeNodes nodes_, agents_;  ///< of the second: agents alone
  std::int64_t bytes_a_rank_;
  std::vector<int> members_, member_;
};

}  // namespace hostless::gpu
