#pragma once

#include <vector>

namespace hostless {

/// Who is where: nodes in the order of their lowest ranks, the ranks of each rising.
struct CompositeNodes {
  std::vector<std::vector<int>> ranks;  ///< [nodes] those of each
  std::vector<int> node;                ///< [ranks] index of its node
  std::vector<int> local;               ///< [ranks] index in its node
  /// The rank of node `of` that has to do with node `other`: different ones for different nodes, as far as
  /// there are.
  int agent(int of, int other) const {
    auto const& all = ranks[static_cast<std::size_t>(of)];
    return all[static_cast<std::size_t>(other) % all.size()];
  }
};

/// told: [ranks] the node of each, by any number.
CompositeNodes composite_nodes(std::vector<int> const& told);

}  // namespace hostless
