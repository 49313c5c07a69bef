#include "stencil/gpu/parts/grid_part.hpp"

#include <algorithm>

#include "stencil/gpu/parts/halo_rows.hpp"

namespace hostless::gpu {
GridPart::GridPart(StencilProblem const& whole, StencilInstance const& instance, std::size_t which)
    : instance_(instance),
      part_(whole.way.parts[which]),
      grid_rows_(whole.grid.extent[0]),
      rows_(PartRows::of(whole.grid, whole.way.parts, which,
                         whole.way.halo_steps * std::int64_t{instance.radius})),
      problem_(whole) {
  problem_.grid = rows_.as_grid(whole.grid, whole.way.parts.size());
  OnDevice const on(part_.device);
  stream_.emplace();
  memory_.emplace(problem_.grid, instance);
  meter_.emplace();
  if (!is_alone()) done_.emplace(), fetched_.emplace();
  if (problem_.way.steps_beside_halos()) bordered_.emplace();
  if (problem_.way.steps_beside_halos() || problem_.way.is_split()) border_stream_.emplace(Stream::first());
  if (problem_.way.cells == GpuCells::streamed) instance.deal_out(problem_);
  if (problem_.way.run == RunKind::persistent) make_waiting(whole.grid);
}

GridPart::~GridPart() {
  try {
    OnDevice const on(part_.device);
    waiting_.reset();
    bordered_.reset();
    fetched_.reset();
    done_.reset();
    meter_.reset();
    memory_.reset();
    border_stream_.reset();
    stream_.reset();
  } catch (Error const&) {  // a GPU that has failed has said so before
  }
}

void GridPart::make_waiting(Grid const& whole) {
  waiting_.emplace();
  std::int64_t const value_words = static_cast<std::int64_t>(problem_.text.value_bytes) / 4;
  Lending const lending{.to_gpus = !is_alone()};  // parts beside store there
  if (problem_.way.cells == GpuCells::resident) {
    waiting_->row_words = (whole.extent[2] + 1) / 2 * 2 * value_words;
    waiting_->words = Array<std::uint64_t>(
        static_cast<std::size_t>(2 * instance_.fields * whole.extent[0] * waiting_->row_words), lending);
  } else {
    memory_->make_room_to_keep();
    if (problem_.way.is_split())
      split_ = instance_.split(problem_, rows_);
    else
      blocks_ = instance_.blocks_at_once(problem_);
    std::int64_t const halo = std::max(rows_.below, rows_.above) * memory_->row_values();
    waiting_->side_words = 2 * instance_.fields * halo * value_words;
    waiting_->words = Array<std::uint64_t>(static_cast<std::size_t>(2 * waiting_->side_words), lending);
  }
  if (!is_alone() || problem_.way.is_split()) instance_.load(problem_);
  waiting_->clear();
}

std::int64_t GridPart::device_bytes() const {
  return memory_->bytes() + (waiting_ ? static_cast<std::int64_t>(waiting_->words.bytes()) : 0);
}

void GridPart::put(int array, CellArray const& cells, bool on_gpu) {
  OnDevice const on(part_.device);
  auto const rows = [&](std::int64_t first, std::int64_t count, std::int64_t of_grid) {
    if (count == 0) return;
    CellArray theirs = cells;
    theirs.data = static_cast<std::byte*>(cells.data) + of_grid * cells.stride[0];
    copy_cells_in(rows_of(memory_->now(array), first, count), theirs, on_gpu, *stream_);
    // cells that stay as given are never written
    if (array < instance_.fields)
      copy_cells_in(rows_of(memory_->other(array), first, count), theirs, on_gpu, *stream_);
  };
  rows(rows_.below, rows_.own, part_.low);
  // such cells are in halos too, which are fetched into one of two arrays
  rows(rows_.halo_first(0), rows_.below, (part_.low == 0 ? grid_rows_ : part_.low) - rows_.below);
  rows(rows_.halo_first(1), rows_.above, part_.high == grid_rows_ ? 0 : part_.high);
}

void GridPart::get(int field, CellArray const& cells, bool on_gpu) const {
  OnDevice const on(part_.device);
  CellArray theirs = cells;
  theirs.data = static_cast<std::byte*>(cells.data) + part_.low * cells.stride[0];
  copy_cells_out(theirs, own(memory_->now(field)), on_gpu, *stream_);
}

double GridPart::largest(int field) const {
  OnDevice const on(part_.device);
  return meter_->largest(own(memory_->other(field)), own(memory_->now(field)), *stream_);
}
std::array<std::uint64_t, 3> GridPart::squares(int field, double top) const {
  OnDevice const on(part_.device);
  return meter_->squares(own(memory_->other(field)), own(memory_->now(field)), top, *stream_);
}
bool GridPart::is_finite(int field) const {
  OnDevice const on(part_.device);
  return meter_->is_finite(own(memory_->now(field)), *stream_);
}

void GridPart::step() {
  instance_.step(problem_, memory_->arrays(instance_.arrays), stream_->get());
  memory_->swap();
}

void GridPart::pass() {
  if (problem_.way.cells != GpuCells::streamed) return step();
  instance_.pass(problem_, memory_->arrays(instance_.arrays), stream_->get());
  memory_->swap();
}

void GridPart::step_beside_halos() {
  StencilArrays const arrays = memory_->arrays(instance_.arrays);
  std::int64_t const radius = instance_.radius;
  std::int64_t const low = rows_.below, high = rows_.below + rows_.own;
  std::int64_t const inner_low = low + (beside_[0] != nullptr ? radius : 0);
  std::int64_t const inner_high = std::max(inner_low, high - (beside_[1] != nullptr ? radius : 0));
  done_->hold(*border_stream_);
  instance_.step_rows(problem_, arrays, {inner_low, inner_high}, stream_->get());
  fetch_halos(*border_stream_);
  if (beside_[0] != nullptr) instance_.step_rows(problem_, arrays, {low, inner_low}, border_stream_->get());
  if (beside_[1] != nullptr) instance_.step_rows(problem_, arrays, {inner_high, high}, border_stream_->get());
  bordered_->record(*border_stream_);
  bordered_->hold(*stream_);
}

void GridPart::fetch_halos(Stream const& stream) {
  std::vector<HaloCopy> copies;
  for (int side = 0; side < 2; ++side) {
    GridPart const* const other = beside_[side];
    if (other == nullptr) continue;
    other->done_->hold(stream);
    std::int64_t const rows = rows_.halo(side);
    auto const bytes = rows * memory_->row_values() * static_cast<std::int64_t>(problem_.text.value_bytes);
    for (int f = 0; f < instance_.fields; ++f)
      copies.push_back({rows_of(other->memory_->now(f), other->rows_.shown_first(1 - side, rows), rows).data,
                        rows_of(memory_->now(f), rows_.halo_first(side), rows).data, bytes});
  }
  if (problem_.way.halos == GpuHalos::kernel) return copy_halos(copies, stream);
  queue_halos(copies, stream);
}

void GridPart::await_fetched() const {
  for (GridPart const* const other : beside_)
    if (other != nullptr) other->fetched_->hold(*stream_);
}

HaloWords GridPart::halo_words() const {
  HaloWords halo;
  std::int64_t const row = memory_->row_values();
  std::int64_t const deep = std::max(rows_.below, rows_.above);
  halo.cells = deep * row;
  for (int side = 0; side < 2; ++side) {
    halo.own_first[side] = rows_.shown_first(side, deep) * row;
    halo.halo_first[side] = rows_.halo_first(side) * row;
    if (beside_[side] == nullptr) continue;
    WaitingMemory const& theirs = *beside_[side]->waiting_;
    halo.to[side] = theirs.words.data() + (side == 0 ? theirs.side_words : 0);
    halo.from[side] = waiting_->words.data() + (side == 0 ? 0 : waiting_->side_words);
  }
  halo.every = problem_.way.halo_steps;
  halo.epoch = waiting_->epoch;
  return halo;
}

ResidentMemory GridPart::resident_memory() const {
  ResidentMemory memory;
  memory.words = waiting_->words.data();
  memory.row_words = waiting_->row_words;
  memory.epoch = waiting_->epoch;
  memory.lost = waiting_->counters.data() + 1;
  memory.deadline_ns = static_cast<std::uint64_t>(problem_.deadline_s * 1e9);
  memory.part = part_;
  memory.first_row = rows_.first;
  for (int side = 0; side < 2; ++side)
    if (beside_[side] != nullptr) memory.beyond[side] = beside_[side]->waiting_->words.data();
  return memory;
}

void GridPart::launch_waiting(std::int64_t steps) {
  StencilArrays const arrays = memory_->arrays(instance_.arrays);
  if (problem_.way.cells == GpuCells::resident) {
    instance_.resident(problem_, arrays, steps, resident_memory(), stream_->get());
    waiting_->epoch += exchanges(steps);
    return;
  }
  if (problem_.way.is_split()) return launch_split(steps);
  auto const deadline_ns = static_cast<std::uint64_t>(problem_.deadline_s * 1e9);
  BlockBarrier const barrier{waiting_->counters.data(), waiting_->counters.data() + 1, waiting_->arrived,
                             deadline_ns};
  std::int64_t barriers = steps - 1;
  if (is_alone()) {
    instance_.steps_with_barriers(problem_, arrays, steps, blocks_, barrier, stream_->get());
  } else {
    instance_.steps_of_part(problem_, arrays, steps, blocks_, barrier, halo_words(), stream_->get());
    barriers += (steps - 1) / problem_.way.halo_steps + 1;
    waiting_->epoch += exchanges(steps);
  }
  waiting_->arrived += static_cast<std::uint32_t>(blocks_) * static_cast<std::uint32_t>(barriers);
}

void GridPart::launch_split(std::int64_t steps) {
  auto const deadline_ns = static_cast<std::uint64_t>(problem_.deadline_s * 1e9);
  std::uint32_t* const counters = waiting_->counters.data();
  SplitWaits waits;
  waits.inner = {counters, counters + 1, waiting_->arrived, deadline_ns};
  waits.border = {counters + 2, counters + 1, waiting_->border_arrived, deadline_ns};
  waits.halo = halo_words();
  instance_.steps_split(problem_, memory_->arrays(instance_.arrays), steps, split_, waits,
                        {border_stream_->get(), stream_->get()});
  auto const joins = static_cast<std::uint32_t>(steps);
  waiting_->arrived += static_cast<std::uint32_t>(split_.blocks.inner) * joins;
  waiting_->border_arrived += static_cast<std::uint32_t>(split_.blocks.border) * joins;
  waiting_->epoch += exchanges(steps);
}

void GridPart::make_ready() const {
  if (problem_.way.is_split()) stream_->wait();
}

bool GridPart::was_lost() const {
  OnDevice const on(part_.device);
  if (problem_.way.is_split()) border_stream_->wait();
  std::uint32_t lost = 0;
  check(HOSTLESS_GPU(MemcpyAsync)(&lost, waiting_->counters.data() + 1, sizeof lost,
                                  HOSTLESS_GPU(MemcpyDeviceToHost), stream_->get()),
        "reading how a kernel ended");
  stream_->wait();
  return lost != 0;
}

bool GridPart::must_clear(std::int64_t steps) const {
  return waiting_->epoch > poison - 2 - exchanges(steps);
}

}  // namespace hostless::gpu
