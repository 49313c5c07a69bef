#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "hostless/plan/routes.hpp"
#include "plan/wires.hpp"

namespace hostless {

/// A node that sends, and one that receives.
using NodePair = std::pair<int, int>;

/// What one rank's items are asked for, regrouped.
struct Asked {
  std::map<Rank, std::vector<std::int32_t>> by_rank;  // readers other than the owner
  std::map<int, std::vector<std::int32_t>> by_node;   // nodes other than the owner's: each item once
};

/// Collects the items of messages; the map keeps them in the order that numbers them.
class Collector {
 public:
  void add(Step step, Rank source, Rank target, Rank owner, std::vector<std::int32_t> const& items) {
    auto& list = wires_[{step, source, target}];
    for (std::int32_t item : items) list.push_back({owner, item});
  }
  void add(Step step, Rank source, Rank target, Item const& item) {
    wires_[{step, source, target}].push_back(item);
  }
  std::vector<Wire> take() {
    std::vector<Wire> all;
    all.reserve(wires_.size());
    for (auto& [key, items] : wires_) {
      std::sort(items.begin(), items.end());
      // One rank may gather for several nodes: it needs a value once.
      items.erase(std::unique(items.begin(), items.end()), items.end());
      all.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::move(items)});
    }
    return all;
  }

 private:
  std::map<std::tuple<Step, Rank, Rank>, std::vector<Item>> wires_;
};

/// [nodes] the ranks of each, rising.
std::vector<std::vector<Rank>> members_of(NodeMap const& nodes);
/// [ranks] the position of each in the list of its node.
std::vector<std::size_t> positions_of(std::vector<std::vector<Rank>> const& members, Rank ranks);

/// The messages of route split beside those inside nodes.
///
/// message_cap  items of one between nodes; raised where a node would receive more of them than it has ranks
void add_split(Collector& collect, std::vector<Asked> const& asked, NodeMap const& nodes,
               std::int64_t message_cap);

/// All messages of route leader.
void add_leader(Collector& collect, std::vector<Pattern> const& patterns, NodeMap const& nodes,
                DieLinks const& dies);

}  // namespace hostless
