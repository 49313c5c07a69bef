#include "hostless/machine/nodes.hpp"

#include <algorithm>
#include <vector>

#include "transport/host_names.hpp"

namespace hostless {

NodeMap find_machines(Group& group) {
  auto const hosts = host_names(group);
  NodeMap map;
  std::vector<HostName> known;
  for (auto const& h : hosts) {
    auto const at = std::find(known.begin(), known.end(), h);
    map.node.push_back(static_cast<int>(at - known.begin()));
    if (at == known.end()) known.push_back(h);
    map.socket.push_back(0);
    map.device.push_back(-1);
  }
  return map;
}

NodeMap find_nodes(Group& group, int ranks_per_node) {
  return ranks_per_node > 0 ? NodeMap::blocks(group.size(), ranks_per_node) : find_machines(group);
}

}  // namespace hostless
