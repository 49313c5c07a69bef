#pragma once
// What one GPU has of a bound stencil: its rows of the grid, a stream, and what its kernels wait by.

#include <optional>

#include "device/on_device.hpp"
#include "stencil/gpu/parts/cell_memory.hpp"
#include "transport/peer/epochs.hpp"

namespace hostless::gpu {

/// What blocks wait by.
struct WaitingMemory {
  Array<std::uint64_t> words;  ///< that tiles store, of all cells; or that other parts store, of halos
  std::int64_t row_words = 0, side_words = 0;
  /// Blocks that have arrived at barriers, whether somebody is lost, and blocks of the border's kernel.
  Array<std::uint32_t> counters{3};
  std::uint32_t epoch = 1, arrived = 0, border_arrived = 0;

  void clear() {
    words.clear();
    counters.clear();
    epoch = 1, arrived = 0, border_arrived = 0;
  }
};

class GridPart {
 public:
  /// Errors  environment  not enough memory
  GridPart(StencilProblem const& whole, StencilInstance const& instance, std::size_t which);
  GridPart(GridPart const&) = delete;
  GridPart& operator=(GridPart const&) = delete;
  ~GridPart();
  /// The parts that own what comes before and after; null: none does.
  void stand_between(GridPart* before, GridPart* after) { beside_[0] = before, beside_[1] = after; }

  int device() const { return part_.device; }
  StencilProblem const& problem() const { return problem_; }
  CellMemory& memory() { return *memory_; }
  Stream const& stream() const { return *stream_; }
  std::int64_t device_bytes() const;
  int blocks() const { return blocks_; }
  SplitPlan const& split() const { return split_; }
  /// From and to a caller's array of all cells.
  void put(int array, CellArray const& cells, bool on_gpu);
  void get(int field, CellArray const& cells, bool on_gpu) const;
  /// As BoundStencil has them, of own cells.
  double largest(int field) const;
  std::array<std::uint64_t, 3> squares(int field, double top) const;
  bool is_finite(int field) const;

  /// All that follow queue on the stream of this part: one step; those of one pass;
  void step();
  void pass();
  /// halos of the fields, from the parts beside, after what they have marked;
  void fetch_halos() { fetch_halos(*stream_); }
  /// one step, whose halos are fetched beside it, after all have marked what was done;
  void step_beside_halos();
  /// that so much is done, and halos are fetched; what follows waits for that of the parts beside;
  void mark_done() { done_->record(*stream_); }
  void hold_done(Stream const& other) const { done_->hold(other); }
  void mark_fetched() { fetched_->record(*stream_); }
  void await_fetched() const;
  /// so many steps in one kernel, or in two at a time.
  void launch_waiting(std::int64_t steps);

  /// Before launch_waiting, where its kernel writes into the arrays that it began with; and after a loss.
  void keep_cells() { memory_->keep(*stream_); }
  void restore_cells() {
    memory_->restore(*stream_);
    stream_->wait();
  }
  /// Where two kernels are to begin: waits for what is queued before them. On streams that share a queue of the
  /// GPU one that waits for another would be before what that one waits for.
  void make_ready() const;
  /// Whether a kernel waited in vain; waits for it.
  bool was_lost() const;
  /// Before epochs run out, and after a loss, of all parts when no kernel is at work.
  bool must_clear(std::int64_t steps) const;
  void clear_waiting() { waiting_->clear(); }
  /// Both arrays of a field by turns; of `resident` the other one in any case.
  void count_waited(std::int64_t steps) {
    if (problem_.way.cells == GpuCells::resident || steps % 2 != 0) memory_->swap();
  }

 private:
  bool is_alone() const { return problem_.way.parts.size() == 1; }
  OwnCells own(OwnCells const& cells) const { return rows_of(cells, rows_.below, rows_.own); }
  std::uint32_t exchanges(std::int64_t steps) const {
    return static_cast<std::uint32_t>(steps / problem_.way.depth() + 1);
  }
  void fetch_halos(Stream const& stream);
  void make_waiting(Grid const& whole);
  HaloWords halo_words() const;
  ResidentMemory resident_memory() const;
  void launch_split(std::int64_t steps);

  StencilInstance const& instance_;
  StencilPart part_;
  std::int64_t grid_rows_;
  PartRows rows_;
  StencilProblem problem_;  ///< of the grid its rows; tiles are those of the whole
  std::optional<Stream> stream_, border_stream_;
  std::optional<CellMemory> memory_;
  mutable std::optional<ChangeMeter> meter_;
  std::optional<WaitingMemory> waiting_;
  std::optional<Event> done_, fetched_, bordered_;
  GridPart* beside_[2] = {};
  int blocks_ = 1;
  SplitPlan split_;
};

}  // namespace hostless::gpu
