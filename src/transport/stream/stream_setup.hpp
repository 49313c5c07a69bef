#pragma once
// What a stream endpoint is made from: messages as bytes of packed buffers, and what the host does for it. No
// plan, no matrix and no GPU is known here, so both sides of the loader include it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hostless/base/wait.hpp"
#include "transport/memory/lent_memory.hpp"

namespace hostless::gpu {

/// What goes to one rank, or comes from it: bytes [first, first + bytes) of a round's packed buffer.
struct StreamPart {
  std::int32_t rank = 0;  ///< may be this one
  std::int64_t first = 0, bytes = 0;
  std::int64_t there = 0;  ///< of what goes out: its first byte among what comes to that rank
  std::int64_t lands = 0;  ///< of what comes in place: its first byte, counted from the field's row 0
  /// Of what goes out and lies together in one field already: where; else null.
  std::byte const* from = nullptr;
};

/// Messages that start together, at most one from each rank to each.
struct StreamRound {
  std::vector<StreamPart> out, in;  ///< by rank, none empty
  std::int64_t out_bytes = 0, in_bytes = 0;
  std::int64_t most_in_bytes = 0;  ///< of the rank to which most comes
  bool in_place = false;           ///< every part of `in` may land in the field itself
};

/// How far a round is that the host carries.
enum class MessageState { under_way, complete, lost };

/// What the host program does for ranks whose kernels ask it, one job after the other. Called by the thread
/// that queues and waits.
struct HostMessaging {
  /// Starts a round between the buffers of StreamEndpoint::buffers, but for what a rank sends to itself
  /// where those are of the GPU.
  std::function<void(int round)> start;
  /// Moves the round that was started last on as far as it goes without waiting. `lost` when a rank has left
  /// or was silent for the limit: so from then on.
  std::function<MessageState()> test;
  /// all[r * count + k]: value k of rank r. Of solves alone: it waits for the others. False: one is lost.
  std::function<bool(double const* mine, int count, double* all)> gather;
  std::string library;  ///< what it says of device memory

  /// Starts a round and waits for it. False: a rank is lost.
  bool carry(int round) const {
    start(round);
    for (Backoff backoff;; backoff.pause())
      if (MessageState const state = test(); state != MessageState::under_way)
        return state == MessageState::complete;
  }
};

/// Packed buffers of a round: what goes out, what comes in.
using StreamBuffers = std::pair<std::byte const*, std::byte*>;

/// Memory of equal size on every rank, of a library that puts into others': an offset is the same place on
/// all of them. Given back when it goes; the library keeps it for the next one.
class SymmetricMemory {
 public:
  virtual ~SymmetricMemory() = default;
  virtual std::byte* here() const = 0;
  /// Where kernels of this rank's GPU load and store that of another; null: nowhere.
  virtual std::byte* of(int rank) const = 0;
  virtual std::int64_t bytes() const = 0;
};

/// Where the ranks of a vendor's library find each other: rank 0's word counts.
struct UniqueId {
  char name[128] = {};
  bool operator==(UniqueId const&) const = default;
};

/// What a rank has to say before it takes symmetric memory with the others. Plain data, gathered by the
/// caller.
constexpr int most_symmetric_blocks = 16;
struct SymmetricOffer {
  UniqueId unique_id;  ///< of rank 0, which has not met the others yet
  std::int32_t has_met = 0;
  std::int64_t wanted_bytes = 0;
  std::int64_t free_bytes[most_symmetric_blocks] = {};  ///< of blocks that the rank does not use; 0: none
};

/// Where a rank is found by the others. Plain data, gathered by the caller.
struct StreamContact {
  int device = 0;
  UniqueId unique_id;
  LentMemory window;          ///< that others store to
  UniqueId unique_id_inside;  ///< of what carries inside a node, where that is another
  std::int32_t connects = 1;  ///< 0: no library connects this rank to others
};

/// Ranks may be connected already: then all whom a library connects name the place where they have met.
inline bool have_met(std::vector<StreamContact> const& all) {
  UniqueId met_at;
  for (StreamContact const& one : all) {
    if (one.connects == 0) continue;
    if (met_at == UniqueId{}) met_at = one.unique_id;
    if (one.unique_id == UniqueId{} || !(one.unique_id == met_at)) return false;
  }
  return true;
}

/// Something that carries between GPUs: what is known of it before it has moved anything.
struct TransportFacts {
  std::string name;     ///< as GpuTransport's
  std::string library;  ///< which one, and its version
  std::string problem;  ///< why it is absent; empty: it can be tried
  std::string detail;   ///< where it is there: how it would carry, as far as can be known
};

/// Of one rank. What it points to outlives the endpoint.
struct StreamSetup {
  int device = 0, rank = 0, ranks = 1;
  int sharers = 1;         ///< ranks that work on this device
  bool processes = false;  ///< ranks are processes of one machine, not threads of this one
  /// Endpoints of another purpose do not share what stays connected: what was recorded in graphs costs
  /// launches outside them a little more.
  int purpose = 0;
  double first_s = 60;     ///< how long the first wait may take: ranks do not start together
  double deadline_s = 10;  ///< and every later one
  std::vector<StreamRound> rounds;
  bool by_copy_engine = false;          ///< peer: not by stores of kernels
  HostMessaging const* host = nullptr;  ///< where the host carries
  bool in_pinned_memory = false;        ///< mpi: whatever the bytes of a round are
  /// Of what it is a part, by name: the other part's kernels wait for ranks on the same stream. Empty: of nothing.
  std::string composite;
  std::shared_ptr<SymmetricMemory> symmetric;  ///< where a library puts into it
  /// Where a transport carries by nodes: [ranks] the node of each, and whether it has messages to or from another
  /// one (1) or none (0); equal on all ranks.
  std::vector<std::int32_t> node;
  std::vector<std::uint8_t> speaks;
};

}  // namespace hostless::gpu
