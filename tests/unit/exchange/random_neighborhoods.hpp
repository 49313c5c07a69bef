#pragma once
// Neighbourhood collectives made up from a number, that every rank makes up alike, and what must come of
// them: copied from the memory of the sender that the two lists name, by nobody's plan.

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "hostless/exchange/exchange.hpp"
#include "hostless/exchange/neighborhood.hpp"
#include "random_plans.hpp"

namespace hostless::testing {

/// One rank's lists, and where its blocks lie, in items.
struct Lists {
  std::vector<Rank> sources, destinations;
  std::vector<std::int64_t> sent, sent_from, received, received_to;  ///< counts and displacements
  std::size_t send_items = 0, receive_items = 0;                     ///< of the memory
  bool is_dense = false;                                             ///< displacements are left out
};

struct Collective {
  enum class Kind { allgather, allgatherv, alltoall, alltoallv };

  Collective(int count, unsigned number) : ranks(count), seed(number), lists(at(count)), random_(number) {
    kind = static_cast<Kind>(below(4));
    if (below(5) > 0) options.route = routes[at(below(5))];
    options.ranks_per_node = 1 + below(count);
    item_bytes = static_cast<std::size_t>(1 + below(64));
    if (below(4) == 0) item_bytes = std::size_t{8} << below(3);
    draw_graph();
    bool const equal = kind == Kind::allgather || kind == Kind::alltoall;
    bool const large = below(10) == 0 && count <= 4;
    most_ = large ? static_cast<int>(200000 / item_bytes) : below(3) == 0 ? 1 : 30;
    std::int64_t const one = below(8) == 0 ? 0 : below(most_) + 1;
    for (Lists& mine : lists) {
      std::int64_t const of_rank = equal ? one : draw_count();
      mine.is_dense = equal || below(3) == 0;
      for (std::size_t k = 0; k < mine.destinations.size(); ++k)
        mine.sent.push_back(equal ? one : gathers() ? of_rank : draw_count());
      if (gathers() && mine.sent.empty()) mine.sent.push_back(of_rank);  // which nobody reads
      mine.send_items = gathers() ? at(mine.sent[0]) : lay_out(mine.sent, mine.sent_from, mine.is_dense);
      if (gathers()) mine.sent_from.assign(mine.sent.size(), 0);
    }
    for (int t = 0; t < ranks; ++t) {
      Lists& mine = lists[at(t)];
      for (std::size_t k = 0; k < mine.sources.size(); ++k)
        mine.received.push_back(lists[at(mine.sources[k])].sent[edge(t, k)]);
      mine.receive_items = lay_out(mine.received, mine.received_to, mine.is_dense);
    }
  }

  bool gathers() const { return kind == Kind::allgather || kind == Kind::allgatherv; }
  /// Whether somebody has a destination several times.
  bool repeats_an_edge() const {
    return std::any_of(lists.begin(), lists.end(), [](Lists const& one) {
      auto all = one.destinations;
      std::sort(all.begin(), all.end());
      return std::adjacent_find(all.begin(), all.end()) != all.end();
    });
  }
  /// Which of the destinations of a source block k of a rank is: as often as that source was before it.
  std::size_t edge(int target, std::size_t k) const {
    auto const& mine = lists[at(target)].sources;
    auto repeat = std::count(mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(k), mine[k]);
    auto const& theirs = lists[at(mine[k])].destinations;
    for (std::size_t e = 0; e < theirs.size(); ++e)
      if (theirs[e] == target && repeat-- == 0) return e;
    return theirs.size();
  }
  std::vector<std::byte> sent_bytes(int rank, int epoch) const {
    std::vector<std::byte> bytes(lists[at(rank)].send_items * item_bytes);
    std::uint64_t const base =
        seed + 1000003u * static_cast<std::uint64_t>(rank) + (static_cast<std::uint64_t>(epoch) << 40);
    for (std::size_t b = 0; b < bytes.size(); ++b) bytes[b] = static_cast<std::byte>(scrambled(base + b));
    return bytes;
  }
  /// Gaps stay as they were.
  void receive(int rank, int epoch, std::byte* memory) const {
    Lists const& mine = lists[at(rank)];
    for (std::size_t k = 0; k < mine.sources.size(); ++k) {
      if (mine.received[k] == 0) continue;
      auto const from = sent_bytes(mine.sources[k], epoch);
      std::int64_t const first = lists[at(mine.sources[k])].sent_from[edge(rank, k)];
      std::memcpy(memory + at(mine.received_to[k]) * item_bytes, from.data() + at(first) * item_bytes,
                  at(mine.received[k]) * item_bytes);
    }
  }
  NeighborCollective planned(Neighborhood const& neighborhood, int rank, std::byte const* send,
                             std::byte* memory) const {
    Lists const& mine = lists[at(rank)];
    std::span<std::byte const> const from(send, mine.send_items * item_bytes);
    std::span<std::byte> const to(memory, mine.receive_items * item_bytes);
    auto const shown = [&](std::vector<std::int64_t> const& all) {
      return mine.is_dense ? std::span<std::int64_t const>{} : std::span<std::int64_t const>(all);
    };
    ReceivedBlocks const received{to, mine.received, shown(mine.received_to), item_bytes};
    switch (kind) {
      case Kind::allgather:
        return neighborhood.allgather(from, to);
      case Kind::allgatherv:
        return neighborhood.allgatherv(from, received);
      case Kind::alltoall:
        return neighborhood.alltoall(from, to);
      case Kind::alltoallv:
        break;
    }
    return neighborhood.alltoallv({from, mine.sent, shown(mine.sent_from), item_bytes}, received);
  }
  std::string name() const {
    static char const* const names[] = {"allgather", "allgatherv", "alltoall", "alltoallv"};
    return std::string(names[static_cast<int>(kind)]) + " " + std::to_string(seed) + " by " +
           (options.route ? hostless::name(*options.route) : "auto");
  }

  int ranks;
  unsigned seed;
  Kind kind;
  NeighborhoodOptions options;
  std::size_t item_bytes;
  std::vector<Lists> lists;

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::int64_t draw_count() { return below(4) == 0 ? 0 : 1 + below(most_); }

  /// Some ranks without neighbours, some edges several times, some to the rank itself.
  void draw_graph() {
    int const density = 1 + below(ranks), alone = below(3 * ranks);
    for (int s = 0; s < ranks; ++s)
      for (int t = 0; t < ranks; ++t) {
        if (s == alone || t == alone || below(density + 1) > 0) continue;
        for (int k = below(6) == 0 ? 2 + below(2) : 1; k > 0; --k) {
          lists[at(s)].destinations.push_back(t);
          lists[at(t)].sources.push_back(s);
        }
      }
    for (Lists& mine : lists) {
      if (below(2) == 0) std::shuffle(mine.destinations.begin(), mine.destinations.end(), random_);
      if (below(2) == 0) std::shuffle(mine.sources.begin(), mine.sources.end(), random_);
    }
  }
  /// Blocks one behind the other, or in any order with gaps. Returns the items of the memory.
  std::size_t lay_out(std::vector<std::int64_t> const& counts, std::vector<std::int64_t>& first, bool dense) {
    std::vector<std::size_t> order(counts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (!dense) std::shuffle(order.begin(), order.end(), random_);
    first.resize(counts.size());
    std::int64_t next = dense ? 0 : below(3);
    for (std::size_t const k : order) {
      first[k] = next;
      next += counts[k] + (dense ? 0 : below(4));
    }
    return at(next);
  }

  std::mt19937 random_;
  int most_ = 1;
};

/// What is wrong with collective `number` on this rank. `compare(collective, epoch, sent)` returns what
/// somebody else's library makes of it, or nothing. Collective.
template <class Compare>
std::string try_collective(Transport& transport, unsigned number, Compare const& compare) {
  int const rank = transport.group().rank();
  Collective const collective(transport.group().size(), number);
  Lists const& mine = collective.lists[at(rank)];
  constexpr std::size_t guard = 64;
  std::size_t const bytes = mine.receive_items * collective.item_bytes;
  std::vector<std::byte> sent(mine.send_items * collective.item_bytes + 1);
  std::vector<std::byte> memory(bytes + 2 * guard, std::byte{0xa5}), expected = memory;
  Neighborhood const neighborhood(transport, mine.sources, mine.destinations, collective.options);
  NeighborCollective const planned =
      collective.planned(neighborhood, rank, sent.data(), memory.data() + guard);
  Exchange exchange(transport, planned.plan, {planned.field}, {{60, 60}, {}, {}});
  std::mt19937 pace(number * 31 + static_cast<unsigned>(rank));
  for (int epoch = 1; epoch <= 3; ++epoch) {
    auto const now = collective.sent_bytes(rank, epoch);
    std::copy(now.begin(), now.end(), sent.begin());
    collective.receive(rank, epoch, expected.data() + guard);
    dawdle(pace);
    exchange.start();
    dawdle(pace);
    if (!exchange.wait()) return collective.name() + ": a rank was lost\n";
    std::string const where =
        " on rank " + std::to_string(rank) + " in exchange " + std::to_string(epoch) + "\n";
    if (memory != expected) return collective.name() + ": bytes differ from what was sent" + where;
    std::vector<std::byte> others(bytes + 1, std::byte{0xa5});  // MPI wants an address in any case
    if (compare(collective, sent, others) && std::memcmp(others.data(), memory.data() + guard, bytes) != 0)
      return collective.name() + ": bytes differ from those of MPI" + where;
  }
  return {};
}

/// So many collectives; what is wrong on this rank.
template <class Compare>
std::string try_collectives(Transport& transport, int count, Compare const& compare) {
  std::string text;
  for (int k = 0; k < count; ++k) {
    text += try_collective(transport, static_cast<unsigned>(1000 * transport.group().size() + k), compare);
    if (transport.group().any(!text.empty())) break;
  }
  return text;
}

/// Nobody else's library.
inline bool alone(Collective const&, std::vector<std::byte> const&, std::vector<std::byte>&) { return false; }

}  // namespace hostless::testing
