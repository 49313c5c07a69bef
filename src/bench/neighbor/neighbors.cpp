#include "bench/neighbor/neighbors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <span>

#include "base/counted.hpp"
#include "bench/known.hpp"
#include "bench/neighbor/neighbor_call.hpp"

namespace hostless::bench {
namespace {

constexpr int most_axes = 4;

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

/// An allgather of one size.
class Allgather final : public NeighborCall {
 public:
  Allgather(Transport& transport, Neighbors const& mine, std::size_t bytes)
      : NeighborCall(transport, mine), memory_(std::make_shared<Memory>()) {
    memory_->sent.resize(bytes);
    memory_->received.resize(bytes * mine.sources.size());
  }

 private:
  struct Memory {  // MPI may still read and write it when a loss has ended the call
    Bytes sent, received;
  };
  static std::uint64_t seed_of(std::uint64_t number, int rank) {
    return mixed(number) + (static_cast<std::uint64_t>(rank) << 40);
  }

  NeighborCollective plan(NeighborWay const& way, int ranks_per_node) override {
    Neighborhood const neighborhood(transport(), mine().sources, mine().destinations,
                                    {way.route, ranks_per_node});
    return neighborhood.allgather(memory_->sent, memory_->received);
  }
  void by_library(LibraryNeighbors& library) override { library.allgather(memory_->sent, memory_->received); }
  std::shared_ptr<void> owner() override { return memory_; }
  std::size_t block_bytes() const override { return memory_->sent.size(); }
  std::size_t gathered_bytes() const override { return memory_->received.size(); }

  void fill(std::uint64_t number) override {
    fill_known(memory_->sent, seed_of(number, rank()));
    std::fill(memory_->received.begin(), memory_->received.end(), std::byte{0});
  }
  void check(std::uint64_t number) override {
    for (std::size_t k = 0; k < mine().sources.size(); ++k) {
      auto const block = std::span(memory_->received).subspan(k * block_bytes(), block_bytes());
      std::size_t const at = first_unknown(block, seed_of(number, mine().sources[k]));
      if (at != block.size())
        throw wrong(fmt::format("rank {}: byte {} of the block of rank {} is another one", rank(), at,
                                mine().sources[k]));
    }
  }

  std::shared_ptr<Memory> memory_;
};

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
    throw Error(ErrorCode::usage, fmt::format("a Moore neighbourhood of {} and radius {} (1 to {} axes, "
                                              "from 1 on). Use others.",
                                              counted(dimension, "axis", "axes"), radius, most_axes));
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
  std::vector<NeighborTiming> all;
  for (std::size_t const bytes : what.bytes) {
    auto const make = [&](NeighborWay const&) {
      return std::make_unique<Allgather>(transport, what.mine, bytes);
    };
    for (NeighborTiming& timing : time_in_turns(transport, what, make, protocol)) {
      timing.bytes = bytes;
      all.push_back(std::move(timing));
    }
  }
  return all;
}

}  // namespace hostless::bench
