#include "transport/composite/composite_nodes.hpp"

#include <algorithm>

namespace hostless {

CompositeNodes composite_nodes(std::vector<int> const& told) {
  CompositeNodes nodes;
  std::vector<int> known;
  for (std::size_t r = 0; r < told.size(); ++r) {
    auto const at = std::find(known.begin(), known.end(), told[r]);
    auto const node = static_cast<std::size_t>(at - known.begin());
    if (at == known.end()) {
      known.push_back(told[r]);
      nodes.ranks.emplace_back();
    }
    nodes.node.push_back(static_cast<int>(node));
    nodes.local.push_back(static_cast<int>(nodes.ranks[node].size()));
    nodes.ranks[node].push_back(static_cast<int>(r));
  }
  return nodes;
}

}  // namespace hostless
