#include "bench/neighbors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <span>

#include "bench/known.hpp"
#include "hostless/exchange/exchange.hpp"
#include "hostless/exchange/neighborhood.hpp"
#include "hostless/machine/nodes.hpp"
#include "transport/mpi/library_neighbors.hpp"

namespace hostless::bench {
namespace {

constexpr int most_axes = 4;

std::size_t at(std::ptrdiff_t k) { return static_cast<std::size_t>(k); }

/// The product is `ranks`, the sum the least; the longest come first.
/// most  of an axis
std::vector<int> axes_of(int ranks, int dimension, int most) {
  if (dimension == 1) return ranks <= most ? std::vector{ranks} : std::vector<int>{};
  std::vector<int> best;
  auto const sum = [](auto const& of) { return std::accumulate(of.begin(), of.end(), std::int64_t{0}); };
  for (int length = std::min(ranks, most); length > 0; --length) {
    if (ranks % length != 0) continue;
    std::vector<int> axes = axes_of(ranks / length, dimension - 1, length);
    if (axes.empty()) continue;
    axes.insert(axes.begin(), length);
    if (best.empty() || sum(axes) < sum(best)) best = std::move(axes);
  }
  return best;
}

/// One way of making an allgather of one size, ready to be called.
class Call {
 public:
  Call(Transport& transport, NeighborAllgather const& what, NeighborWay const& way, std::size_t bytes,
       WaitLimits limits)
      : mine_(&what.mine), rank_(transport.group().rank()), memory_(std::make_shared<Memory>()) {
    memory_->sent.resize(bytes);
    memory_->received.resize(bytes * what.mine.sources.size());
    Group& group = transport.group();
    group.together([&] {
      if (way.by_library && !what.vendor)
        throw Error(ErrorCode::usage,
                    "MPI's own collective without MPI (there is none between these "
                    "ranks). Start with mpirun, or leave that way out.");
    });
    group.barrier();
    auto const begin = Clock::now();
    if (way.by_library) {
      library_ = library_neighbors(*what.vendor, what.mine.sources, what.mine.destinations);
    } else {
      Neighborhood const neighborhood(transport, what.mine.sources, what.mine.destinations,
                                      {way.route, what.ranks_per_node});
      planned_ = neighborhood.allgather(memory_->sent, memory_->received);
      exchange_ = std::make_unique<Exchange>(transport, planned_.plan, std::vector<Field>{planned_.field},
                                             ExchangeOptions{limits, memory_, std::nullopt});
    }
    set_up_s_ = group.max(std::chrono::duration<double>(Clock::now() - begin).count());
  }

  void operator()() {
    ++calls_;
    if (library_) return library_->allgather(memory_->sent, memory_->received);
    exchange_->start();
    if (!exchange_->wait()) lose("in an allgather");
  }

  /// A call whose every byte is looked at.
  void prove(Group& group, std::uint64_t number) {
    auto const seed = [number](int rank) { return mixed(number) + (static_cast<std::uint64_t>(rank) << 40); };
    fill_known(memory_->sent, seed(rank_));
    std::fill(memory_->received.begin(), memory_->received.end(), std::byte{0});
    (*this)();
    group.together([&] {
      for (std::size_t k = 0; k < mine_->sources.size(); ++k) {
        auto const block =
            std::span(memory_->received).subspan(k * memory_->sent.size(), memory_->sent.size());
        std::size_t const at = first_unknown(block, seed(mine_->sources[k]));
        if (at != block.size())
          throw wrong(fmt::format("rank {}: byte {} of the block of rank {} is another one", rank_, at,
                                  mine_->sources[k]));
      }
    });
  }

  /// Counts what crosses between nodes. Collective.
  void count(Group& group, NodeMap const& nodes, NeighborTiming& timing) const {
    auto const many = static_cast<std::size_t>(nodes.nodes());
    timing.bytes_out.assign(many, 0);
    timing.bytes_in.assign(many, 0);
    auto const node_of = [&](int rank) {
      return static_cast<std::size_t>(nodes.node[static_cast<std::size_t>(rank)]);
    };
    auto const add = [&](int target, std::int64_t bytes) {
      if (nodes.same_node(rank_, target) || bytes == 0) return;
      timing.bytes_out[node_of(rank_)] += bytes;
      timing.bytes_in[node_of(target)] += bytes;
      ++timing.messages;
    };
    if (library_)
      for (int const target : mine_->destinations)
        add(target, static_cast<std::int64_t>(memory_->sent.size()));
    for (Stage const& stage : planned_.plan.stages)
      for (Message const& message : stage.out)
        add(message.target, message.items * static_cast<std::int64_t>(planned_.field.item_bytes));
    for (auto* list : {&timing.bytes_out, &timing.bytes_in})
      for (std::int64_t& bytes : *list) bytes = group.sum(bytes);
    timing.messages = group.sum(timing.messages);
    timing.route = planned_.plan.route;
    timing.set_up_s = set_up_s_;
    timing.calls = calls_;
  }

 private:
  struct Memory {  // MPI may still read and write it when a loss has ended the call
    Bytes sent, received;
  };
  Neighbors const* mine_;
  int rank_;
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<LibraryNeighbors> library_;
  NeighborCollective planned_;
  std::unique_ptr<Exchange> exchange_;
  double set_up_s_ = 0;
  std::int64_t calls_ = 0;
};

/// Of what was measured in the same repeats, so that what disturbs a repeat disturbs both.
void compare_with_library(NeighborAllgather const& what, std::vector<NeighborTiming>& timings) {
  auto const library =
      std::find_if(what.ways.begin(), what.ways.end(), [](NeighborWay const& way) { return way.by_library; });
  if (library == what.ways.end()) return;
  auto const& held = timings[at(library - what.ways.begin())].call.step_s;
  for (NeighborTiming& timing : timings) {
    std::vector<double> ratios;
    for (std::size_t k = 0; k < held.size(); ++k) ratios.push_back(held[k] / timing.call.step_s[k]);
    timing.library_over = median_bound(ratios);
  }
}

std::vector<NeighborTiming> time_size(Transport& transport, NeighborAllgather const& what,
                                      NodeMap const& nodes, std::size_t bytes, Protocol const& protocol) {
  Group& group = transport.group();
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<NeighborTiming> timings;
  Protocol once = protocol;
  once.repeat = 1;
  for (std::size_t way = 0; way < what.ways.size(); ++way) {
    calls.push_back(std::make_unique<Call>(transport, what, what.ways[way], bytes, protocol.limits));
    calls.back()->prove(group, way);
    timings.emplace_back().way = way;
  }
  for (int repeat = 0; repeat < protocol.repeat; ++repeat) {
    for (std::size_t k = 0; k < calls.size(); ++k) {
      std::size_t const way = (k + at(repeat)) % calls.size();
      timings[way].call.step_s.push_back(time_steps(group, once, *calls[way]).best());
    }
    once.warm_up = 0;
  }
  compare_with_library(what, timings);
  for (std::size_t way = 0; way < calls.size(); ++way) {
    calls[way]->prove(group, what.ways.size() + way);
    std::sort(timings[way].call.step_s.begin(), timings[way].call.step_s.end());
    timings[way].bytes = bytes;
    calls[way]->count(group, nodes, timings[way]);
  }
  return timings;
}

}  // namespace

Neighbors random_sparse(int ranks, int rank, double density, std::uint64_t seed) {
  auto const is_edge = [&](int source, int target) {
    if (source == target) return false;
    auto const pair = static_cast<std::uint64_t>(source) * static_cast<std::uint64_t>(ranks) +
                      static_cast<std::uint64_t>(target);
    std::uint64_t const drawn = mixed(mixed(seed + 1) + pair);
    constexpr int bits = std::numeric_limits<double>::digits;
    return std::ldexp(static_cast<double>(drawn >> (64 - bits)), -bits) < density;
  };
  Neighbors mine;
  for (int other = 0; other < ranks; ++other) {
    if (is_edge(other, rank)) mine.sources.push_back(other);
    if (is_edge(rank, other)) mine.destinations.push_back(other);
  }
  return mine;
}

Neighbors moore(int ranks, int rank, int dimension, int radius) {
  if (dimension < 1 || dimension > most_axes || radius < 1)
    throw Error(ErrorCode::usage, fmt::format("a Moore neighbourhood of {} axes and radius {} (1 to {} axes, "
                                              "from 1 on). Use others.",
                                              dimension, radius, most_axes));
  auto const axes = axes_of(ranks, dimension, ranks);
  std::set<int> reached{rank};
  int stride = 1;
  for (int const length : axes) {
    int const steps = std::min(radius, length / 2);
    std::set<int> wider;
    for (int const from : reached) {
      int const at = from / stride % length;
      for (int step = -steps; step <= steps; ++step)
        wider.insert(from + ((at + step + length) % length - at) * stride);
    }
    reached = std::move(wider);
    stride *= length;
  }
  reached.erase(rank);
  std::vector<int> const list(reached.begin(), reached.end());
  return {list, list};
}

std::vector<NeighborTiming> neighbor_allgather(Transport& transport, NeighborAllgather const& what,
                                               Protocol const& protocol) {
  if (std::find(what.bytes.begin(), what.bytes.end(), std::size_t{0}) != what.bytes.end())
    throw Error(ErrorCode::usage, "a block of 0 bytes (nothing would move). Use 1 or more.");
  NodeMap const nodes = find_nodes(transport.group(), what.ranks_per_node);
  std::vector<NeighborTiming> all;
  for (std::size_t const bytes : what.bytes)
    for (NeighborTiming& timing : time_size(transport, what, nodes, bytes, protocol))
      all.push_back(std::move(timing));
  return all;
}

}  // namespace hostless::bench
