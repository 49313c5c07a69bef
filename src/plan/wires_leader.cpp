#include <algorithm>
#include <map>
#include <numeric>

#include "plan/index.hpp"
#include "plan/wire_parts.hpp"

namespace hostless {
namespace {

/// Parts of n items in proportion to weights, cut by largest remainder, the first of equals first.
std::vector<std::int64_t> parts_of(std::int64_t n, std::vector<std::int64_t> const& weights) {
  std::int64_t const sum = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
  std::vector<std::int64_t> parts;
  for (std::int64_t const weight : weights) parts.push_back(n * weight / sum);
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return n * weights[a] % sum > n * weights[b] % sum; });
  std::int64_t const left = n - std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  for (std::size_t k = 0; k < at(left); ++k) ++parts[order[k]];
  return parts;
}

using Items = std::vector<std::int32_t>;

/// The messages of one source.
class FromSource {
 public:
  FromSource(Collector& collect, Rank source, Pattern const& pattern, NodeMap const& nodes,
             std::vector<int> const& gpu, std::vector<std::size_t> const& die, DieLinks const& dies)
      : collect_(collect), source_(source), nodes_(nodes), gpu_(gpu), die_(die), dies_(dies) {
    for (Rank const reader : pattern.receiver) {
      auto const [entry, added] = leader_.emplace(gpu_[at(reader)], reader);
      if (!added) entry->second = std::min(entry->second, reader);
    }
    for (std::size_t k = 0; k < pattern.item.size(); ++k)
      sort_in(pattern.item[k],
              {pattern.receiver.begin() + pattern.first[k], pattern.receiver.begin() + pattern.first[k + 1]});
  }

  void add_near() {
    for (auto const& [readers, items] : shared_)
      deal(Step::near, Step::share, readers, weights(readers), items);
  }
  /// The leaders of a node get equal pieces.
  void add_far() {
    for (auto const& [leaders, items] : far_)
      deal(Step::network, Step::redistribute, leaders, std::vector<std::int64_t>(leaders.size(), 1), items);
  }

 private:
  /// One item: readers on the source's own GPU get it from there; those of another one of its node share it;
  /// on other nodes the leaders of the GPUs that read it share it and hand it on.
  void sort_in(std::int32_t item, std::vector<Rank> const& readers) {
    std::map<int, std::vector<Rank>> near;  // GPU: readers
    std::map<int, std::vector<Rank>> far;   // node: leaders
    for (Rank const reader : readers) {
      if (reader == source_) continue;
      int const gpu = gpu_[at(reader)];
      if (gpu == gpu_[at(source_)]) {
        collect_.add(Step::near, source_, reader, {source_, item});
      } else if (nodes_.same_node(source_, reader)) {
        near[gpu].push_back(reader);
      } else {
        Rank const leader = leader_.at(gpu);
        auto& leaders = far[nodes_.node[at(reader)]];
        if (std::find(leaders.begin(), leaders.end(), leader) == leaders.end()) leaders.push_back(leader);
        if (leader != reader) collect_.add(Step::hand_on, leader, reader, {source_, item});
      }
    }
    for (auto const& [gpu, group] : near) shared_[group].push_back(item);
    for (auto& [node, leaders] : far) {
      std::sort(leaders.begin(), leaders.end());
      far_[leaders].push_back(item);
    }
  }

  /// Each of `ranks` gets its part in one step and passes it to the others in the next.
  void deal(Step first, Step then, std::vector<Rank> const& ranks, std::vector<std::int64_t> const& weights,
            Items const& items) {
    auto const parts = parts_of(std::ssize(items), weights);
    auto next = items.begin();
    for (std::size_t k = 0; k < ranks.size(); ++k) {
      Items const part(next, next + parts[k]);
      next += parts[k];
      if (part.empty()) continue;
      collect_.add(first, source_, ranks[k], source_, part);
      for (Rank const other : ranks)
        if (other != ranks[k]) collect_.add(then, ranks[k], other, source_, part);
    }
  }

  /// Equation 2 where links lead to any of them, else equation 1; all alike where nothing is known.
  std::vector<std::int64_t> weights(std::vector<Rank> const& readers) const {
    std::vector<std::int64_t> links, hops;
    for (Rank const reader : readers) {
      if (dies_.dies == 0) return std::vector<std::int64_t>(readers.size(), 1);
      std::size_t const entry = die_[at(source_)] * at(dies_.dies) + die_[at(reader)];
      links.push_back(dies_.links[entry]);
      hops.push_back(dies_.hops[entry]);
    }
    if (std::accumulate(links.begin(), links.end(), std::int64_t{0}) > 0) return links;
    std::int64_t const sum = std::accumulate(hops.begin(), hops.end(), std::int64_t{0});
    if (sum == 0 || hops.size() == 1) return std::vector<std::int64_t>(readers.size(), 1);
    for (std::int64_t& hop : hops) hop = sum - hop;
    return hops;
  }

  Collector& collect_;
  Rank source_;
  NodeMap const& nodes_;
  std::vector<int> const& gpu_;          // [ranks]
  std::vector<std::size_t> const& die_;  // [ranks]
  DieLinks const& dies_;
  std::map<int, Rank> leader_;                       // GPU: its lowest rank that reads anything of the source
  std::map<std::vector<Rank>, Items> shared_, far_;  // readers of one GPU, leaders of one node: items
};

/// [ranks] GPUs by number: ranks of one device of a node; ranks on the processor are one to a socket.
std::vector<int> gpus_of(NodeMap const& nodes) {
  std::map<std::tuple<int, int, int>, int> known;
  std::vector<int> gpu;
  for (Rank r = 0; r < nodes.ranks(); ++r) {
    int const device = nodes.device[at(r)];
    auto const key = std::tuple(nodes.node[at(r)], device, device < 0 ? nodes.socket[at(r)] : 0);
    gpu.push_back(known.emplace(key, static_cast<int>(known.size())).first->second);
  }
  return gpu;
}

}  // namespace

void add_leader(Collector& collect, std::vector<Pattern> const& patterns, NodeMap const& nodes,
                DieLinks const& dies) {
  std::vector<int> const gpu = gpus_of(nodes);
  std::vector<std::size_t> const die = positions_of(members_of(nodes), nodes.ranks());
  for (Rank s = 0; s < nodes.ranks(); ++s) {
    FromSource from(collect, s, patterns[at(s)], nodes, gpu, die, dies);
    from.add_near();
    from.add_far();
  }
}

}  // namespace hostless
