#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hostless/base/host_device.hpp"
#include "hostless/plan/node_map.hpp"

namespace hostless {

using BufferId = std::int32_t;
using MessageId = std::int32_t;
using StageId = std::int32_t;

enum class Space : std::uint8_t { device, pinned, host };
/// Farthest boundary a message crosses: what it costs, and how it is printed.
enum class Locality : std::uint8_t { device, socket, node, network };
/// Why the target of a message may be overwritten.
enum class ReuseGuarantee : std::uint8_t {
  reduction,  ///< an all-rank sum lies between two uses of the same epoch of the target
  answer,     ///< a message of the opposite direction is sent after the read
  credit,     ///< a zero-byte message that the plan adds says so
  promise     ///< the caller's word (ready sends)
};
enum class Route : std::uint8_t { direct, two_step, three_step, split, leader };
inline constexpr std::array all_routes = {Route::direct, Route::two_step, Route::three_step, Route::split,
                                          Route::leader};
char const* name(Route route);
/// Errors  usage  unknown name
Route route_from(char const* text);
char const* name(Space space);
char const* name(Locality locality);
char const* name(ReuseGuarantee reuse_guarantee);
/// The farthest boundary between two ranks: their nodes, their sockets, or, with both on one device, none.
Locality locality_between(NodeMap const& nodes, Rank a, Rank b);

/// What must move, before a route is chosen: one rank's owned items and who reads them.
struct Pattern {
  std::int64_t owned = 0;
  std::vector<std::int32_t> item;   ///< owned items that anybody needs, rising
  std::vector<std::int64_t> first;  ///< receivers of item[k]: receiver[first[k] .. first[k + 1])
  std::vector<Rank> receiver;       ///< rising inside an item
  /// [ghosts of this rank, by (source rank, item)] where each lies among the ghosts: every number below their
  /// number once. Empty: in that order. Only for ghosts in an array of their own (PlanOptions::apart).
  std::vector<std::int32_t> position;
};

/// Memory of one rank that a plan moves items through. Buffer 0 is what the caller sends from; the ghosts lie
/// behind its items, or in buffer 1 (ExchangePlan::receive). All others are staging.
struct Buffer {
  BufferId id = 0;
  Rank home = 0;
  Space space = Space::host;
  std::int64_t items = 0;
  int epochs = 1;  ///< uses that may be under way at once: 2 where a transport keeps the next one apart
};

/// Part of a buffer: a box (rows x count, `stride` items apart, 0 of one row) or, when `index` is not empty, a list;
/// the box then is left at `count` 0.
struct Pieces {
  BufferId buffer = 0;
  std::int64_t first = 0;
  std::int32_t count = 0, rows = 1, stride = 0;
  std::vector<std::int32_t> index;  ///< offsets from `first`
  std::int64_t items() const {
    return index.empty() ? std::int64_t{count} * rows : static_cast<std::int64_t>(index.size());
  }
};

/// Pack, unpack or copy inside the reach of one rank.
struct Move {
  Rank actor = 0;
  Pieces from, to;
};

struct Message {
  MessageId id = 0;  ///< the same number on both sides, unique over all ranks
  Rank source = 0, target = 0;
  BufferId from = 0, to = 0;  ///< buffer of the source rank, buffer of the target rank
  std::int64_t from_first = 0, to_first = 0, items = 0;
  ReuseGuarantee reuse_guarantee = ReuseGuarantee::reduction;
  MessageId answer = -1;  ///< for ReuseGuarantee::answer and credit: the message that proves it
  Locality locality = Locality::node;
  int trigger = 0;  ///< messages of one trigger group start together
};

/// One node of the graph of an exchange: when the stages in `after` are complete, `pack` runs, `out` is sent,
/// `in` is awaited and `unpack` runs.
struct Stage {
  static constexpr StageId largest_id = 65535;  ///< look-ups by id are tables
  StageId id = 0;                               ///< 0 to largest_id, each once in a plan
  std::vector<StageId> after;
  std::vector<Move> pack;
  std::vector<Message> out, in;
  std::vector<Move> unpack;
};

/// Where an item of [owned | ghosts] lies, relative to the first owned one, in a vector laid out by rising
/// owner: [ghosts of lower ranks | owned | ghosts of this and higher ranks]. Negative for the first part. The
/// same for whole block rows.
///
/// ghosts_below  those of lower ranks, which are the first ghosts
HOSTLESS_HOST_DEVICE std::int64_t vector_offset_of(std::int64_t item, std::int64_t owned,
                                                   std::int64_t ghosts_below) {
  return item < owned                  ? item
         : item - owned < ghosts_below ? item - owned - ghosts_below
                                       : item - ghosts_below;
}

/// One rank's part of an exchange: pure data, made without a GPU or MPI, the same on every transport and run.
/// Items are of any number of bytes, which whoever binds the plan chooses; nothing here is of matrices (what
/// a product with one needs beside it: hostless/operate/sweep_plan.hpp).
struct ExchangePlan {
  static constexpr int current_version = 4;
  int version = current_version;
  std::uint64_t fingerprint = 0;  ///< of the whole plan (all ranks), equal on every rank
  Route route = Route::direct;
  int ranks = 1;
  Rank rank = 0;
  NodeMap nodes;
  std::int64_t owned = 0, ghosts = 0;  ///< items of this rank's that can be sent, items that it receives
  /// The buffer of the ghosts. 0: one array, [owned | ghosts] as counted; where its items lie,
  /// `vector_offset` says. 1: an array of their own, ghost g at item g.
  BufferId receive = 0;
  std::int64_t ghosts_below = 0;  ///< with one array: ghosts that lower ranks own, the first ones
  std::vector<Buffer> buffers;
  std::vector<Stage> stages;
  /// Of an item of buffer 0, in one array with ghosts.
  std::int64_t vector_offset(std::int64_t item) const { return vector_offset_of(item, owned, ghosts_below); }
  /// Whether an item is one of the caller's own, which an exchange only reads.
  bool is_owned(BufferId buffer, std::int64_t item) const { return buffer == 0 && item < owned; }
  /// Number of the ghost at an item of a buffer; -1: there is none.
  std::int64_t ghost_at(BufferId buffer, std::int64_t item) const {
    return buffer != receive || is_owned(buffer, item) ? -1 : item - (receive == 0 ? owned : 0);
  }
  /// The item of buffer `receive` where a ghost lies.
  std::int64_t item_of_ghost(std::int64_t ghost) const { return receive == 0 ? owned + ghost : ghost; }
  /// The first of the buffers that are not the caller's.
  BufferId first_staging() const { return receive + 1; }
  /// Items sent and received by this rank, zero-byte credits not counted.
  std::int64_t items_sent() const;
  std::int64_t items_received() const;
};

}  // namespace hostless
