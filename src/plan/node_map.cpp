#include "hostless/plan/node_map.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.hpp"
#include "hostless/base/error.hpp"

namespace hostless {

int NodeMap::nodes() const { return node.empty() ? 0 : *std::max_element(node.begin(), node.end()) + 1; }

std::vector<Rank> NodeMap::ranks_of(int which) const {
  std::vector<Rank> found;
  for (Rank r = 0; r < ranks(); ++r)
    if (node[static_cast<std::size_t>(r)] == which) found.push_back(r);
  return found;
}

NodeMap NodeMap::blocks(int ranks, int per_node) {
  if (ranks < 1 || per_node < 1)
    throw Error(ErrorCode::usage,
                fmt::format("{} with {} on a node (both must be at least 1). Give positive numbers "
                            "for ranks and ranks per node",
                            counted(ranks, "rank"), counted(per_node, "rank")));
  NodeMap map;
  map.node.resize(static_cast<std::size_t>(ranks));
  for (Rank r = 0; r < ranks; ++r) map.node[static_cast<std::size_t>(r)] = r / per_node;
  map.socket.assign(map.node.size(), 0);
  map.device.assign(map.node.size(), -1);
  return map;
}

}  // namespace hostless
