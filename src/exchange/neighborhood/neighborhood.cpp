#include "hostless/exchange/neighborhood.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "base/counted.hpp"
#include "exchange/neighborhood/automatic_route.hpp"
#include "exchange/neighborhood/blocks.hpp"
#include "hostless/base/error.hpp"
#include "hostless/machine/nodes.hpp"
#include "plan/index.hpp"
#include "plan/plans_beside.hpp"

namespace hostless {
namespace {

[[noreturn]] void refuse_graph(std::string const& what) {
  throw Error(ErrorCode::usage,
              what + " (an edge has two ends). Correct the lists of sources and destinations.");
}

/// Every rank's numbers, on every rank.
std::vector<std::vector<std::int64_t>> gathered(Group& group, std::vector<std::int64_t> const& mine) {
  return group.exchange_values(std::vector<std::vector<std::int64_t>>(at(group.size()), mine));
}

void require_ranks(Group const& group, std::span<Rank const> list, char const* what) {
  for (std::size_t k = 0; k < list.size(); ++k) {
    if (list[k] >= 0 && list[k] < group.size()) continue;
    std::string const text =
        fmt::format("rank {}: {}[{}] is {}, and there {} {}", group.rank(), what, k, list[k],
                    group.size() == 1 ? "is" : "are", counted(group.size(), "rank"));
    if (list[k] >= 0) refuse_graph(text);
    throw Error(ErrorCode::usage, text + " (MPI_PROC_NULL is such a number: nobody is there). Leave it out.");
  }
}

/// What all ranks must have chosen alike; -1: the route of what moves.
std::int64_t number_of(std::optional<Route> route) { return route ? static_cast<std::int64_t>(*route) : -1; }
std::string words_of(std::int64_t route) {
  return route < 0 ? "that of what moves" : name(static_cast<Route>(route));
}

void require_same_options(std::vector<std::vector<std::int64_t>> const& lists) {
  for (std::size_t r = 1; r < lists.size(); ++r) {
    auto const differ = [&](char const* what, std::string const& first, std::string const& other) {
      throw Error(ErrorCode::usage,
                  fmt::format("options.{} is {} on rank 0 and {} on rank {} (all ranks plan "
                              "together). Pass the same on all.",
                              what, first, other, r));
    };
    if (lists[r][0] != lists[0][0]) differ("route", words_of(lists[0][0]), words_of(lists[r][0]));
    if (lists[r][1] != lists[0][1])
      differ("ranks_per_node", std::to_string(lists[0][1]), std::to_string(lists[r][1]));
  }
}

/// One end of an edge: (source, target, its position in the list of the rank that names it).
using End = std::tuple<Rank, Rank, std::int32_t>;

std::string times(std::size_t count) {
  return count == 0 ? "not at all" : count == 1 ? "once" : fmt::format("{} times", count);
}

/// The first edge that its two ranks do not have equally often.
void require_both_ends(std::vector<End> const& out, std::vector<End> const& in) {
  auto const edge = [](End const& end) { return std::pair(std::get<0>(end), std::get<1>(end)); };
  std::size_t k = 0;
  while (k < out.size() && k < in.size() && edge(out[k]) == edge(in[k])) ++k;
  if (k == out.size() && k == in.size()) return;
  auto const first = k == out.size()  ? edge(in[k])
                     : k == in.size() ? edge(out[k])
                                      : std::min(edge(out[k]), edge(in[k]));
  auto const count = [&](std::vector<End> const& ends) {
    return static_cast<std::size_t>(
        std::count_if(ends.begin(), ends.end(), [&](End const& end) { return edge(end) == first; }));
  };
  refuse_graph(fmt::format("rank {} has rank {} among its destinations {}, which has it among its sources {}",
                           first.first, first.second, times(count(out)), times(count(in))));
}

template <class Blocks>
std::vector<Extent> blocks_of(NamedSide const& side, Blocks const& blocks) {
  return given_blocks(side, {blocks.memory.size(), blocks.item_bytes, blocks.counts, blocks.displacements});
}

/// The largest unit of up to 4096 bytes that divides a number: a kernel copies units word by word, and knows
/// each word of one.
std::int64_t unit_of(std::int64_t divided) {
  constexpr std::int64_t most = 4096;
  for (std::int64_t unit = std::min(divided, most); unit > 1; --unit)
    if (divided % unit == 0) return unit;
  return 1;
}

/// Of a message of route split between nodes, from where libraries change to the rendezvous protocol.
constexpr std::int64_t message_cap_bytes = 8192;

}  // namespace

char const* Neighborhood::name(Call call) {
  switch (call) {
    case Call::allgather:
      return "allgather";
    case Call::allgatherv:
      return "allgatherv";
    case Call::alltoall:
      return "alltoall";
    case Call::alltoallv:
      break;
  }
  return "alltoallv";
}

Neighborhood::Neighborhood(Transport& transport, std::span<Rank const> sources,
                           std::span<Rank const> destinations, NeighborhoodOptions const& options)
    : transport_(&transport),
      sources_(sources.begin(), sources.end()),
      destinations_(destinations.begin(), destinations.end()) {
  Group& group = transport.group();
  group.together([&] {
    require_ranks(group, sources, "sources");
    require_ranks(group, destinations, "destinations");
    if (options.route && *options.route > all_routes.back())
      throw Error(ErrorCode::usage, fmt::format("options.route: {} is no Route. Use one, or none.",
                                                static_cast<int>(*options.route)));
    if (options.ranks_per_node < 0)
      throw Error(ErrorCode::usage,
                  fmt::format("options.ranks_per_node: {} (a node has a rank). Use 0 to find "
                              "nodes.",
                              options.ranks_per_node));
  });
  std::vector<std::int64_t> mine{number_of(options.route), options.ranks_per_node,
                                 static_cast<std::int64_t>(destinations.size())};
  mine.insert(mine.end(), destinations.begin(), destinations.end());
  mine.insert(mine.end(), sources.begin(), sources.end());
  auto const lists = gathered(group, mine);
  require_same_options(lists);
  find_edges(lists);
  nodes_ = find_nodes(group, options.ranks_per_node);
  route_ = options.route;
}

void Neighborhood::find_edges(std::vector<std::vector<std::int64_t>> const& lists) {
  std::vector<End> out, in;
  for (std::size_t r = 0; r < lists.size(); ++r) {
    constexpr std::size_t head = 3;
    std::size_t const behind = head + at(lists[r][2]);
    auto const me = static_cast<Rank>(r);
    for (std::size_t k = head; k < behind; ++k)
      out.emplace_back(me, static_cast<Rank>(lists[r][k]), static_cast<std::int32_t>(k - head));
    for (std::size_t k = behind; k < lists[r].size(); ++k)
      in.emplace_back(static_cast<Rank>(lists[r][k]), me, static_cast<std::int32_t>(k - behind));
    out_of_.push_back(lists[r][2]);
    in_of_.push_back(static_cast<std::int64_t>(lists[r].size() - behind));
  }
  std::sort(out.begin(), out.end());
  std::sort(in.begin(), in.end());
  require_both_ends(out, in);
  for (std::size_t k = 0; k < out.size(); ++k) {
    auto const [source, target, position] = out[k];
    bool const again = k > 0 && edges_.back().source == source && edges_.back().target == target;
    edges_.push_back({source, target, position, std::get<2>(in[k]), again ? edges_.back().repeat + 1 : 0});
  }
}

Neighborhood::Sides Neighborhood::agree(Call call, Side const& sent, Side const& received) const {
  std::vector<std::int64_t> mine{static_cast<std::int64_t>(call), sent.bytes, received.bytes};
  for (Side const* side : {&sent, &received})
    for (Extent const& block : side->blocks) mine.insert(mine.end(), {block.first, block.units});
  auto const lists = gathered(transport_->group(), mine);
  for (std::size_t r = 1; r < lists.size(); ++r)
    if (lists[r][0] != lists[0][0])
      throw Error(
          ErrorCode::usage,
          fmt::format("rank 0 calls {} and rank {} {} (all take part in one collective). Call the same.",
                      name(static_cast<Call>(lists[0][0])), r, name(static_cast<Call>(lists[r][0]))));
  Sides sides;
  for (std::size_t r = 0; r < lists.size(); ++r) {
    std::size_t next = 3;
    auto const side = [&](std::int64_t blocks, std::int64_t bytes) {
      Side one{std::vector<Extent>(at(blocks)), bytes};
      for (Extent& block : one.blocks) {
        block = {lists[r][next], lists[r][next + 1]};
        next += 2;
      }
      return one;
    };
    sides.sent.push_back(side(gathers(call) ? 1 : out_of_[r], lists[r][1]));
    sides.received.push_back(side(in_of_[r], lists[r][2]));
  }
  return sides;
}

void Neighborhood::require_equal_bytes(Call call, Sides const& sides) const {
  for (Edge const& edge : edges_) {
    std::int64_t const sent = sides.sent[at(edge.source)].blocks[gathers(call) ? 0 : at(edge.out)].units;
    std::int64_t const wanted = sides.received[at(edge.target)].blocks[at(edge.in)].units;
    if (sent != wanted)
      throw Error(
          ErrorCode::usage,
          fmt::format("{}: rank {} sends {} to its destinations[{}], rank {}, which receives {} from its "
                      "sources[{}] (a block has one length). Pass the same on both sides.",
                      name(call), edge.source, counted(sent, "byte"), edge.out, edge.target, wanted,
                      edge.in));
  }
}

std::vector<Pattern> Neighborhood::patterns(Call call, Sides const& sides) const {
  std::vector<std::vector<std::pair<std::int32_t, Rank>>> readers(out_of_.size());
  std::vector<Pattern> all(out_of_.size());
  for (std::size_t r = 0; r < all.size(); ++r) all[r].owned = gathers(call) ? 0 : out_of_[r];
  for (Edge const& edge : edges_) {
    // A block that one rank receives twice is two items in one piece of memory.
    std::int32_t const item = gathers(call) ? edge.repeat : edge.out;
    if (gathers(call))
      all[at(edge.source)].owned = std::max<std::int64_t>(all[at(edge.source)].owned, item + 1);
    if (sides.received[at(edge.target)].blocks[at(edge.in)].units > 0)
      readers[at(edge.source)].emplace_back(item, edge.target);
  }
  for (std::size_t r = 0; r < all.size(); ++r) {
    Pattern& pattern = all[r];
    std::sort(readers[r].begin(), readers[r].end());
    pattern.first.push_back(0);
    for (std::size_t k = 0; k < readers[r].size(); ++k) {
      pattern.receiver.push_back(readers[r][k].second);
      if (k + 1 < readers[r].size() && readers[r][k + 1].first == readers[r][k].first) continue;
      pattern.item.push_back(readers[r][k].first);
      pattern.first.push_back(static_cast<std::int64_t>(pattern.receiver.size()));
    }
  }
  return all;
}

/// [ranks][items] of the patterns.
std::vector<std::vector<std::int64_t>> Neighborhood::bytes_of_items(Call call, Sides const& sides) const {
  std::vector<std::vector<std::int64_t>> all(out_of_.size());
  if (!gathers(call))
    for (std::size_t r = 0; r < all.size(); ++r)
      for (Extent const& block : sides.sent[r].blocks) all[r].push_back(block.units);
  else
    for (Edge const& edge : edges_)
      if (auto& items = all[at(edge.source)]; items.size() <= at(edge.repeat))
        items.push_back(sides.sent[at(edge.source)].blocks[0].units);
  return all;
}

std::vector<Extents> Neighborhood::extents(Call call, Sides const& sides, std::int64_t unit) const {
  auto const in_units = [&](Extent const& block) { return Extent{block.first / unit, block.units / unit}; };
  std::vector<Extents> all(out_of_.size());
  for (std::size_t r = 0; r < all.size(); ++r) {
    all[r].send_units = sides.sent[r].bytes / unit;
    all[r].receive_units = sides.received[r].bytes / unit;
    if (!gathers(call))
      for (Extent const& block : sides.sent[r].blocks) all[r].owned.push_back(in_units(block));
  }
  for (Edge const& edge : edges_) {  // by (source, target, out): ghosts by (source, item)
    auto& owned = all[at(edge.source)].owned;
    if (gathers(call) && owned.size() <= at(edge.repeat))
      owned.push_back(in_units(sides.sent[at(edge.source)].blocks[0]));
    Extent const block = in_units(sides.received[at(edge.target)].blocks[at(edge.in)]);
    if (block.units > 0) all[at(edge.target)].ghosts.push_back(block);
  }
  return all;
}

/// look  says where this rank's blocks lie: what it sends, what it receives
template <class Look>
NeighborCollective Neighborhood::plan(Call call, void const* send, void* receive, Look const& look) const {
  Group& group = transport_->group();
  Side sent, received;
  group.together([&] {
    std::tie(sent.blocks, received.blocks) = look(NamedSide{group.rank(), "sent", destinations_.size()},
                                                  NamedSide{group.rank(), "received", sources_.size()});
    sent.bytes = end_of_blocks(sent.blocks);
    received.bytes = end_of_blocks(received.blocks);
    require_disjoint(group.rank(), received.blocks);
  });
  Sides const sides = agree(call, sent, received);
  require_equal_bytes(call, sides);
  NeighborCollective made;
  group.together([&] {
    std::int64_t divided = 0, longest = 1;
    for (auto const* list : {&sides.sent, &sides.received})
      for (Side const& side : *list)
        for (Extent const& block : side.blocks)
          if (block.units > 0) {
            divided = std::gcd(std::gcd(divided, block.first), block.units);
            longest = std::max(longest, block.units);
          }
    std::int64_t const unit = unit_of(divided);
    auto const all = patterns(call, sides);
    PlanOptions const options{.reuse_guarantee = ReuseGuarantee::answer,
                              .apart = true,
                              .message_cap = std::max<std::int64_t>(1, message_cap_bytes / longest)};
    Route const route = route_ ? *route_ : automatic_route(all, nodes_, bytes_of_items(call, sides), options);
    auto const beside = plans_beside(route, all, nodes_, group.rank(), options);
    made.plan = std::move(stretched(beside, all, options, extents(call, sides, unit)).front());
    made.field = Field::apart(send, receive, at(unit));
  });
  return made;
}

NeighborCollective Neighborhood::allgather(std::span<std::byte const> send,
                                           std::span<std::byte> receive) const {
  return plan(Call::allgather, send.data(), receive.data(), [&](auto const& from, auto const& to) {
    return std::pair(equal_blocks({from.rank, from.name, 1}, send.size()), equal_blocks(to, receive.size()));
  });
}

NeighborCollective Neighborhood::allgatherv(std::span<std::byte const> send,
                                            ReceivedBlocks const& receive) const {
  return plan(Call::allgatherv, send.data(), receive.memory.data(), [&](auto const& from, auto const& to) {
    return std::pair(equal_blocks({from.rank, from.name, 1}, send.size()), blocks_of(to, receive));
  });
}

NeighborCollective Neighborhood::alltoall(std::span<std::byte const> send,
                                          std::span<std::byte> receive) const {
  return plan(Call::alltoall, send.data(), receive.data(), [&](auto const& from, auto const& to) {
    return std::pair(equal_blocks(from, send.size()), equal_blocks(to, receive.size()));
  });
}

NeighborCollective Neighborhood::alltoallv(SentBlocks const& send, ReceivedBlocks const& receive) const {
  return plan(Call::alltoallv, send.memory.data(), receive.memory.data(),
              [&](auto const& from, auto const& to) {
                return std::pair(blocks_of(from, send), blocks_of(to, receive));
              });
}

}  // namespace hostless
