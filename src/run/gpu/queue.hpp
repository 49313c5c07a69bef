#pragma once
// Where the kernels of a text go that runs phase by phase: onto a stream, or into a graph. The text is
// executed by the host; its decisions are taken by the kernels.

#include <functional>
#include <string>

#include "device/queue.hpp"
#include "hostless/base/host_device.hpp"
#include "hostless/run/state.hpp"
#include "run/gpu/launch.hpp"
#include "run/gpu/stamps.hpp"

namespace hostless::gpu {

/// A loop of a graph: whoever decides in its body tells it whether it goes on.
struct Loop {
  Condition condition{};
  Gate gate = Gate::solve;
  bool exists = false;
};

/// What phases share in device memory. Of several right-hand sides the first one's; those of the next follow,
/// `state` by `state`, sums by their size.
struct PhaseMemory {
  State* state = nullptr;
  Orders* orders = nullptr;   ///< the host copies its orders there
  double* partial = nullptr;  ///< [widest_sum * tiles], sum after sum; with free_order one of each
  double* total = nullptr;    ///< [widest_sum] of a sum that was begun; before it the order to stop, 0 or 1
  std::uint32_t* arrived = nullptr;  ///< blocks of the running phase
  int tiles = 0;
  /// Right-hand sides, how far their vectors lie apart, and how many have decided in the running phase.
  int columns = 1;
  std::int64_t column_stride = 0;
  std::uint32_t* decided = nullptr;
  int tiles_a_thread = 1;   ///< of the block that adds them, a power of two
  bool free_order = false;  ///< blocks add to a sum as they arrive (`--reduction fast`)
  /// Of several ranks, else null: the last block of a phase waits for those of the others.
  PeerView const* peers = nullptr;
  int rounds = 1;                     ///< of their plan
  std::uint32_t* epoch = nullptr;     ///< of their last barrier
  std::uint64_t deadline_cycles = 0;  ///< of one wait
  std::uint64_t first_cycles = 0;     ///< of the first one of a run: ranks do not start together

  /// Of one of several right-hand sides.
  HOSTLESS_HOST_DEVICE double* partial_of(int column) const {
    return partial + static_cast<std::int64_t>(column) * widest_sum * tiles;
  }
  HOSTLESS_HOST_DEVICE double* total_of(int column) const { return total + column * widest_sum; }
};

/// The tiles of a rank (two slices each), those first that read nothing of other ranks.
struct TileOrder {
  std::int32_t const* tile = nullptr;  ///< in device memory; null: sweeps are not parted
  int interior = 0;                    ///< so many do
};

class Queue : public StreamQueue {
 public:
  /// text() launches what the loop's body holds; phases whose gate is closed change nothing, so it may be
  /// executed once too often.
  virtual void repeat(Gate gate, std::function<void()> const& text) = 0;
  /// What `beside` queues from here on comes after all that was queued so far, and is done beside what is
  /// queued after it, until `join`: whatever follows comes after both. Where there is one place to queue to,
  /// it is done in the order of the calls.
  virtual void fork() {}
  virtual void beside(std::function<void()> const& use) { use(); }
  virtual void join() {}
  /// The innermost loop around what is launched next.
  virtual Loop loop() const { return {}; }
  /// Null: nothing is traced, and `mark` queues nothing.
  void trace_with(Stamps const* stamps) { stamps_ = stamps; }
  void mark(Mark mark, Gate gate) {
    if (stamps_ != nullptr) stamps_->put(*this, mark, gate);
  }

 private:
  Stamps const* stamps_ = nullptr;
};

/// A product with the matrix that kernels of its own make before the phase that uses it.
class Product {
 public:
  virtual ~Product() = default;
  /// Queues y = A x. Where the gate is closed, y may be left as it was.
  virtual void multiply(Queue& queue, Gate gate, PhaseMemory const& memory, double const* x,
                        double* y) const = 0;
  virtual std::int64_t bytes() const = 0;
  virtual bool guards_hold() const = 0;
  /// A few words for people.
  virtual std::string describe() const = 0;
};

}  // namespace hostless::gpu
