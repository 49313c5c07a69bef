#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hostless/base/deadline.hpp"
#include "hostless/plan/halo_plan.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless {

/// How sums over ranks are formed.
enum class Reduction : std::uint8_t {
  ordered,  ///< per-rank partials are gathered and added in a fixed tree: the same bits on every transport
  fast      ///< the transport's own all-reduce, where it has one; on a GPU the order of all sums is free
};

/// A plan bound to a transport and to one vector: fills its ghosts, adds up numbers over ranks.
///
/// Construction is collective and does all the allocating. Afterwards nothing is allocated, and nothing
/// blocks but `finish` and `finish_sum`, which end by a deadline. Used by one thread at a time.
class Exchange {
 public:
  static constexpr int widest_sum = 4;  ///< values of one sum
  /// vector  the first owned entry of [ghosts below | owned | ghosts above] fp64, which outlives this object:
  ///         item i of the plan's buffer 0 lies at vector[plan.place(i)]
  /// owner   of the vector's memory: kept, beyond this object, as long as the transport may write there
  /// Errors  usage  the plan does not fit the group, asks for what the transport has not, or has a message
  ///                whose items do not lie together there
  Exchange(Transport& transport, HaloPlan const& plan, double* vector, Reduction reduction, WaitLimits limits,
           std::shared_ptr<void> owner = nullptr);

  /// Starts the next exchange of the vector's owned items. They may not change until `complete`.
  void start();
  /// Moves every stage on as far as it goes without waiting. True when the exchange is complete.
  bool advance();
  /// True when all the stages of `needs` have been unpacked.
  bool unpacked(std::vector<StageId> const& needs) const;
  bool complete() const { return complete_; }
  /// Waits until `ready()`; polls messages and sums meanwhile. False: a peer is lost (latched, and told to
  /// others).
  template <class Ready>
  bool wait(Ready&& ready);
  bool finish() {
    return wait([this] { return complete_; });
  }

  /// Contributes `mine`, at most widest_sum values, to the next sum over ranks; one is under way at a time.
  /// After a loss: nothing.
  void begin_sum(std::span<double const> mine);
  /// Waits for it. totals[k] is the sum of value k over ranks, in the order of the plan (`ordered`).
  bool finish_sum(std::span<double> totals);
  /// After finish_sum, with `ordered`: value k of rank r is contributions()[r * width + k] for
  /// width = contributions().size() / ranks; the last one of a rank is its control bits.
  std::span<double const> contributions() const {
    return {gathered_.data(), width_ * static_cast<std::size_t>(ranks_)};
  }
  /// Control bits sent with every begin_sum from now on, until `lower`; and those of all ranks after
  /// finish_sum.
  void raise(std::uint32_t flags) { raised_ |= flags; }
  void lower() { raised_ = 0; }
  std::uint32_t flags() const { return seen_; }

  bool lost() const { return lost_; }
  /// Tells the others that this rank leaves.
  void leave() noexcept;
  Reduction reduction() const { return reduction_; }

  /// Seconds spent waiting for messages and for sums since construction.
  double waited_s() const { return waited_s_; }

 private:
  void move(Move const& move);
  double* memory(BufferId buffer);
  double* at(BufferId buffer, std::int64_t item);
  void require_together(BufferId buffer, std::int64_t first, std::int64_t items) const;
  bool step(std::size_t stage);
  bool all_sent();
  bool poll_sum();
  enum class Phase : std::uint8_t { waiting, started, done };

  HaloPlan const& plan_;
  double* vector_;
  Reduction reduction_;
  WaitLimits limits_;
  int ranks_;
  struct Memory {
    std::vector<std::vector<double>> buffers;  // by buffer id, 0 empty: the bound vector
    std::shared_ptr<void> vector;
  };
  std::shared_ptr<Memory> memory_;
  std::vector<int> slot_of_buffer_;
  std::unique_ptr<Endpoint> endpoint_;
  std::vector<std::vector<int>> out_of_stage_, in_of_stage_;  // indices into the binding
  std::vector<std::vector<int>> after_;                       // stage positions
  std::vector<int> position_of_stage_;
  std::vector<Phase> phase_;
  std::vector<std::uint8_t> sent_;
  std::uint32_t epoch_ = 0;
  bool complete_ = true;
  std::vector<double> gathered_, contribution_, tree_;
  std::size_t width_ = 0;
  bool sum_open_ = false, sum_ready_ = false;
  std::uint32_t raised_ = 0, seen_ = 0;
  bool lost_ = false, waited_before_ = false;
  double waited_s_ = 0;
};

/// Control bits that travel with every sum, so that all ranks see a request at the same iteration.
namespace control {
inline constexpr std::uint32_t stop = 1;  ///< somebody asked to stop
}

}  // namespace hostless

#include "hostless/base/wait.hpp"

template <class Ready>
bool hostless::Exchange::wait(Ready&& ready) {
  if (lost_) return false;
  if (ready()) return true;
  auto const begin = Clock::now();
  Deadline const deadline = Deadline::after(waited_before_ ? limits_.later_s : limits_.first_s);
  auto const waited = wait_for(
      [&] {
        advance();
        return ready();
      },
      [&] { return endpoint_->peer_left(); }, deadline);
  waited_s_ += std::chrono::duration<double>(Clock::now() - begin).count();
  waited_before_ = true;
  if (waited == Waited::done) return true;
  leave();
  return false;
}
