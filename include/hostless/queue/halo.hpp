#pragma once
// Halos of grids that a queue fills: the StreamHalo of Bridges et al. (section IV, figures 2 and 3).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hostless/queue/queue.hpp"

namespace hostless {

/// Which neighbours a box has: across its faces, or across edges and corners too.
enum class HaloReach : std::uint8_t { star, box };

/// How ranks lie, and what of the grid is here. Axes are 2 or 3, the last one is that of neighbouring ranks and, where
/// a field says nothing else, of neighbouring cells.
struct HaloGrid {
  std::vector<int> ranks;          ///< along each axis; their product is the number of ranks
  std::vector<bool> periodic;      ///< by axis: the first rank follows the last one
  std::vector<std::int64_t> size;  ///< of this rank's box, without its halo
  int width = 1;                   ///< of the halo, 1 to 3 cells on both sides of each axis
  HaloReach reach = HaloReach::box;
};

/// An array of the box and its halo, in memory that the queue reaches. It is the caller's and outlives the queue's work.
struct HaloField {
  void* cells = nullptr;              ///< the first one, which is the halo's where all axes begin
  std::size_t item_bytes = 0;         ///< of a cell, 1 to 64
  Datatype element = Datatype::byte;  ///< what a cell is made of, for scatters; byte: it is gathered alone
  /// From a cell to the next one, in bytes, by axis; they do not overlap, and grow from the last axis to the first.
  /// Empty: cells lie close together.
  std::vector<std::int64_t> strides{};
};

struct HaloOptions {
  /// Ready sends, with two sets of messages: whoever has heard a neighbour's message has its receive of the next one. By
  /// nccl they are standard ones.
  bool ready = false;
  /// The first of 54 that its messages have; two halos under way between the same ranks need other ones.
  int tag = 0;
};

struct HaloStep {
  /// In the place of the fields' arrays, one each, of the same strides and in the same memory. Empty: those.
  std::span<void* const> arrays{};
  /// With ready sends steps are runs: the first one starts receives behind a barrier, the last one of a run, which all
  /// ranks say is the last, leaves no request started. It stands before a step on another queue, and at the end of what a
  /// stream records. A standard step is a run of its own.
  bool ends_run = false;
  /// What owns the arrays, where they would go before: kept until the queue has come to the step's end. A stream's queue keeps
  /// it until a wait has found the stream idle, and of what is recorded as long as there is the queue.
  std::shared_ptr<void const> keeps{};
};

/// Halos of some fields, for as many steps as you like: one message a neighbour with all fields in it. Move-only; one
/// thread at a time calls anything about it. Messages go on when it has gone, until their queue has come to their end.
class QueueHalo {
 public:
  /// Collective over the ranks of `communicator`. Makes the messages and matches them, by one call. Costs memory for
  /// each message twice (ready: four times), and two messages a neighbour.
  /// Errors  usage, all of them on all ranks, with nothing made: axes that are not 2 or 3, ranks whose product is another
  ///                number, a width that is not 1 to 3 or above a box's size, cells of no bytes or more than 64, or not of
  ///                whole elements, no field or more than 16, strides that overlap, 2 GiB or more of a field in a message
  ///         QueueError mismatch     the same: ranks say different things, or neighbours have faces of different sizes
  ///                    unsupported  the same: memory that the communicator's GPU does not reach
  ///         peer_lost  as Request::wait
  QueueHalo(Communicator& communicator, HaloGrid const& grid, std::vector<HaloField> const& fields,
            HaloOptions const& options = {});
  QueueHalo(QueueHalo&&) noexcept;
  QueueHalo& operator=(QueueHalo&&) noexcept;
  ~QueueHalo();

  /// Cells of neighbours' borders become those of the halo. On a stream one kernel packs for all neighbours and fields, one
  /// starts and waits (of 26 neighbours five), one unpacks; on the host two functions of the queue pack and unpack. Halos
  /// beyond a border of the grid stay as they are. After a loss (Queue::wait throws it) cells of the halo and what was
  /// added are anything.
  /// Errors  QueueError  of the starts, other_queue (another one's run was not ended): nothing of it is enqueued
  ///         usage       not as many arrays as fields, or one that is not aligned to its elements
  void enqueue_gather(Queue& queue, HaloStep const& step = {});
  /// The reverse: what lies in the halo is added to the cells of its owners, and becomes 0. A cell is the sum of itself and
  /// of what comes, from left to right in the order of directions ((-1, -1), (-1, 0), ...): its bits depend on nothing else.
  /// Errors  as enqueue_gather
  ///         usage  a field has no element that can be added
  void enqueue_scatter(Queue& queue, HaloStep const& step = {});

  /// Messages of a step to other ranks, and their bytes.
  std::size_t messages() const;
  std::size_t bytes() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hostless
