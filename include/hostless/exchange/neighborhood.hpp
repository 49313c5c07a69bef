#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hostless/exchange/field.hpp"
#include "hostless/plan/exchange_plan.hpp"
#include "hostless/plan/extents.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless {

/// How the collectives of a neighbourhood are planned. Equal on all ranks.
struct NeighborhoodOptions {
  std::optional<Route> route;  ///< empty: `automatic_route` of what each collective moves
  int ranks_per_node = 0;      ///< ranks 0 .. k-1 are node 0, and so on; 0: nodes are found by host name
};

/// What this rank sends in a v-variant: block k goes to destinations[k]. Blocks may share bytes.
struct SentBlocks {
  std::span<std::byte const> memory;
  std::span<std::int64_t const> counts;         ///< [destinations] items of each block, from 0 on
  std::span<std::int64_t const> displacements;  ///< [destinations] items in front of each; empty: no gaps
  std::size_t item_bytes = sizeof(double);
};

/// What this rank receives: block k comes from sources[k]. Blocks share no byte, and what lies between them
/// is left as it is.
struct ReceivedBlocks {
  std::span<std::byte> memory;
  std::span<std::int64_t const> counts;         ///< [sources] items of each block, from 0 on
  std::span<std::int64_t const> displacements;  ///< [sources] items in front of each; empty: no gaps
  std::size_t item_bytes = sizeof(double);
};

/// A collective that was planned: what an Exchange (memory of the host) or a GpuExchange (of a GPU, and
/// queued on a stream) is made of, with options of its own. An item of the plan is a unit, the largest number
/// of bytes, up to 4096, of which all blocks of all ranks and all that lies in front of them are multiples.
struct NeighborCollective {
  ExchangePlan plan;
  Field field;
};

/// Who sends to whom, as MPI's distributed graph has it, and the persistent collectives of it: made once,
/// then started and finished any number of times.
///
///     Neighborhood const neighborhood(transport, sources, destinations);
///     NeighborCollective const halo = neighborhood.alltoallv(send, receive);
///     Exchange exchange(transport, halo.plan, {halo.field});   // or GpuExchange
///
/// The order of blocks is that of the two lists. A rank may be its own neighbour, and be on a list several
/// times: the k-th block that it sends to a rank is the k-th that this rank has from it. What one rank sends
/// to several in `allgather` crosses to another node once, where the route says so. What is sent and what is
/// received, each from the start of its memory to its last block, share no byte.
///
/// All member functions that plan are collective. Each is refused on all ranks, with one text, before
/// anything has moved.
/// Errors  usage  blocks whose two sides have different bytes (both ranks are named), that are not one a
///                neighbour, leave their memory, or are received where another one is; negative counts and
///                displacements; items without bytes; other calls on other ranks; more than 2^31 - 1 units on
///                a rank
///         peer_lost  a rank does not come
/// Cost    one gather of all ranks' blocks; O(n log n) time for n = (sender, receiver) pairs of all ranks,
///         whatever the bytes
class Neighborhood {
 public:
  /// Collective.
  /// sources, destinations  [any] ranks, in any order
  /// Errors  usage  on all ranks: no rank of this transport; an edge that one of its ranks has more often
  ///                than the other; other options on other ranks
  /// Cost    one gather of all lists, which every rank keeps
  Neighborhood(Transport& transport, std::span<Rank const> sources, std::span<Rank const> destinations,
               NeighborhoodOptions const& options = {});

  /// The same block to every destination.
  /// send     the block: all of it
  /// receive  [sources] blocks, equal parts of it; that of sources[k] is part k
  NeighborCollective allgather(std::span<std::byte const> send, std::span<std::byte> receive) const;
  /// As above with blocks of any lengths and places where they are received.
  NeighborCollective allgatherv(std::span<std::byte const> send, ReceivedBlocks const& receive) const;
  /// A block of its own to every destination.
  /// send     [destinations] blocks, equal parts of it
  /// receive  [sources] blocks, equal parts of it
  NeighborCollective alltoall(std::span<std::byte const> send, std::span<std::byte> receive) const;
  /// As above with blocks of any lengths and places on both sides.
  NeighborCollective alltoallv(SentBlocks const& send, ReceivedBlocks const& receive) const;

  std::span<Rank const> sources() const { return sources_; }
  std::span<Rank const> destinations() const { return destinations_; }
  /// Of all collectives; empty: each one's own (NeighborCollective::plan.route).
  std::optional<Route> route() const { return route_; }

 private:
  /// Where blocks lie, in bytes.
  struct Side {
    std::vector<Extent> blocks;
    std::int64_t bytes = 0;  ///< of the memory, up to the end of the last block
  };
  /// Of all ranks, what a collective is planned from.
  struct Sides {
    std::vector<Side> sent, received;
  };
  enum class Call : std::int64_t { allgather, allgatherv, alltoall, alltoallv };
  struct Edge {
    Rank source = 0, target = 0;
    std::int32_t out = 0, in = 0;  ///< its places among the source's destinations, the target's sources
    std::int32_t repeat = 0;       ///< how many of the same two ranks are in front
  };
  static bool gathers(Call call) { return call == Call::allgather || call == Call::allgatherv; }
  static char const* name(Call call);

  void find_edges(std::vector<std::vector<std::int64_t>> const& lists);
  Sides agree(Call call, Side const& sent, Side const& received) const;
  void require_equal_bytes(Call call, Sides const& sides) const;
  std::vector<Pattern> patterns(Call call, Sides const& sides) const;
  std::vector<std::vector<std::int64_t>> bytes_of_items(Call call, Sides const& sides) const;
  std::vector<Extents> extents(Call call, Sides const& sides, std::int64_t unit) const;
  template <class Look>
  NeighborCollective plan(Call call, void const* send, void* receive, Look const& look) const;

  Transport* transport_;
  std::vector<Rank> sources_, destinations_;
  std::optional<Route> route_;
  NodeMap nodes_;
  std::vector<Edge> edges_;                   ///< of all ranks, by (source, target, out)
  std::vector<std::int64_t> out_of_, in_of_;  ///< [ranks] destinations and sources of each
};

}  // namespace hostless
