// The route of an exchange whose every message is known, on nodes whose network is not: bytes and messages of
// the fullest node and rank, weighed by two figures that hold for links from 100 Mbit/s to 200 Gbit/s.
#include "exchange/neighborhood/automatic_route.hpp"

#include <algorithm>
#include <map>

#include "plan/index.hpp"
#include "plan/wires.hpp"

namespace hostless {
namespace {

// Time of a message between nodes that has no bytes, in bytes that its link carries meanwhile: 60 us at
// 1 Gbit/s are 7.5 KB, 1.5 us at 50 Gbit/s 9 KB.
constexpr double start_bytes = 8192;
// Inside a node bytes and messages cost this part of what they cost between nodes.
constexpr double inside = 0.125;
// Counts know nothing of a rank that waits for another one's stage: a route must save more than that.
constexpr double worth = 0.75;

/// What passes one end, in one direction.
struct Load {
  double bytes = 0, messages = 0;
  void add(double more) {
    bytes += more;
    ++messages;
  }
};

/// Bytes that the links could have carried while messages of one depth are under way.
class Level {
 public:
  explicit Level(NodeMap const& nodes)
      : nodes_(nodes),
        links_(2 * at(nodes.nodes())),
        far_(2 * nodes.node.size()),
        near_(2 * nodes.node.size()) {}

  void add(Rank source, Rank target, double bytes) {
    bool const is_inside = nodes_.same_node(source, target);
    auto& ends = is_inside ? near_ : far_;
    ends[2 * at(source)].add(bytes);
    ends[2 * at(target) + 1].add(bytes);
    if (is_inside) return;
    links_[2 * at(nodes_.node[at(source)])].add(bytes);
    links_[2 * at(nodes_.node[at(target)]) + 1].add(bytes);
  }

  double cost() const {
    double link = 0, rank = 0;
    for (Load const& load : links_) link = std::max(link, load.bytes);
    for (std::size_t k = 0; k < far_.size(); ++k)
      rank = std::max(
          rank, start_bytes * far_[k].messages + inside * (near_[k].bytes + start_bytes * near_[k].messages));
    return link + rank;
  }

 private:
  NodeMap const& nodes_;
  std::vector<Load> links_, far_, near_;  // [2 * node or rank + (0 out, 1 in)]
};

double cost_of(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes,
               std::vector<std::vector<std::int64_t>> const& bytes, PlanOptions const& options) {
  std::map<Step, std::size_t> depth;
  std::vector<Level> levels;
  auto const steps = steps_of(route, options.by_socket);
  for (auto const& [step, follows] : steps) {
    std::size_t const here = follows < 0 ? 0 : depth.at(steps[at(follows)].first) + 1;
    depth[step] = here;
    while (levels.size() <= here) levels.emplace_back(nodes);
  }
  for (Wire const& wire : wires(route, patterns, nodes, options)) {
    double sum = 0;
    for (Item const& item : wire.items) sum += static_cast<double>(bytes[at(item.source)][at(item.item)]);
    levels[depth.at(wire.step)].add(wire.source, wire.target, sum);
  }
  double cost = 0;
  for (Level const& level : levels) cost += level.cost();
  return cost;
}

}  // namespace

Route automatic_route(std::vector<Pattern> const& patterns, NodeMap const& nodes,
                      std::vector<std::vector<std::int64_t>> const& bytes, PlanOptions const& options) {
  if (nodes.nodes() < 2) return Route::direct;
  double const direct = cost_of(Route::direct, patterns, nodes, bytes, options);
  Route best = Route::direct;
  double least = worth * direct;
  for (Route const route : {Route::two_step, Route::leader, Route::three_step})
    if (double const cost = cost_of(route, patterns, nodes, bytes, options); cost < least)
      best = route, least = cost;
  return best;
}

}  // namespace hostless
