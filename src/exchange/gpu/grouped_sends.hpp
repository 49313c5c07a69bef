#pragma once
// What a program does that calls the vendors' library of collectives (NCCL, RCCL) by itself: one group of sends
// and receives on a stream, from and to its own buffers. It is what exchanges are held against; nothing of
// hostless is on the way, and the library's calls block as they do by default.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "transport/stream/stream_setup.hpp"

namespace hostless::gpu {

/// What goes to a rank, or comes from it, in memory of the GPU. Where two ranks have several, the k-th that is
/// sent is the k-th that is received.
struct GroupedPart {
  int rank = 0;
  std::byte* at = nullptr;
  std::size_t bytes = 0;
};

class GroupedSends {
 public:
  /// Collective: the library waits for all ranks. After `deadline_s` a thread is left behind that does.
  virtual ~GroupedSends() = default;
  /// ncclGroupStart, an ncclSend of each part that goes out and an ncclRecv of each that comes, ncclGroupEnd, on
  /// a stream of the vendor's that may record. What connects two ranks, the first message between them, must
  /// not be recorded; it is called by another thread, for `first_s` at most.
  /// Errors  environment  with the library's words
  ///         peer_lost    two ranks were not connected in time
  virtual void enqueue(std::vector<GroupedPart> const& out, std::vector<GroupedPart> const& in,
                       void* stream) = 0;
  /// After a loss: what waits goes off the GPU, and nothing is queued any more. No graph has calls of it. Returns
  /// after `deadline_s` at the latest.
  virtual void abort() noexcept = 0;
  virtual std::string describe() const = 0;
};

/// Whose ranks meet under a name of rank 0 (ncclGetUniqueId); each has a GPU of its own.
struct GroupedRank {
  int device = 0, rank = 0, ranks = 1;
  UniqueId name;
  double first_s = 60;     ///< for all ranks to join, and for two of them to connect
  double deadline_s = 10;  ///< for the end
};

/// Inside a GPU library. Errors  environment  it has no such library, or with its words; not all ranks have joined in
/// time
UniqueId make_group_name();
std::unique_ptr<GroupedSends> make_grouped_sends(GroupedRank const& mine);

}  // namespace hostless::gpu
