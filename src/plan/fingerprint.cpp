#include <algorithm>
#include <vector>

#include "base/hash.hpp"
#include "hostless/plan/routes.hpp"

namespace hostless {

std::uint64_t fingerprint(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes,
                          PlanOptions const& options) {
  Hash hash;
  Route const travelled = patterns.size() > 1 ? route : Route::direct;  // of one rank nothing travels
  for (std::int64_t number :
       {std::int64_t{ExchangePlan::current_version}, static_cast<std::int64_t>(travelled),
        static_cast<std::int64_t>(options.reuse_guarantee), static_cast<std::int64_t>(options.space),
        static_cast<std::int64_t>(options.apart), options.message_cap,
        static_cast<std::int64_t>(options.by_socket), static_cast<std::int64_t>(options.dies.dies)})
    hash.add(number);
  hash.add(options.dies.links);
  hash.add(options.dies.hops);
  hash.add(nodes.node);
  hash.add(nodes.socket);
  std::vector<int> const on_the_processor(nodes.device.size(), -1);
  hash.add(on_the_processor);
  for (Pattern const& pattern : patterns) {
    hash.add(pattern.owned);
    hash.add(pattern.item);
    hash.add(pattern.first);
    hash.add(pattern.receiver);
    hash.add(pattern.position);
  }
  return hash.value() ^ mark_of_devices(nodes);
}

std::uint64_t mark_of_devices(NodeMap const& nodes) {
  if (std::all_of(nodes.device.begin(), nodes.device.end(), [](int device) { return device < 0; })) return 0;
  Hash hash;
  hash.add(nodes.device);
  return hash.value();
}

}  // namespace hostless
