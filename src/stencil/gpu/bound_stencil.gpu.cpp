// A stencil's arrays in the memory of one GPU, and the runs that step them.
#include "stencil/gpu/bound_stencil.hpp"

#include <algorithm>
#include <optional>

#include "device/graph.hpp"
#include "device/on_device.hpp"
#include "stencil/gpu/cells.hpp"
#include "transport/peer/epochs.hpp"

namespace hostless::gpu {
namespace {

/// Two arrays of each field, one of each coefficient.
class CellMemory {
 public:
  CellMemory(StencilProblem const& p, StencilInstance const& instance)
      : grid_(p.grid), fields_(instance.fields), value_bytes_(static_cast<int>(p.text.value_bytes)) {
    constexpr std::int64_t whole = 32;  // cells: rows begin where no transfer is cut
    stride_[1] = (grid_.extent[2] + whole - 1) / whole * whole;
    stride_[0] = stride_[1] * grid_.extent[1];
    std::size_t const bytes =
        static_cast<std::size_t>(stride_[0] * grid_.extent[0]) * static_cast<std::size_t>(value_bytes_);
    for (int k = 0; k < instance.arrays + instance.fields; ++k) {
      memory_.emplace_back(bytes);
      memory_.back().clear();  // what lies beyond a row is copied, and never means anything
    }
  }
  OwnCells now(int array) const {
    return cells(array < fields_ ? array + (swapped_ ? fields_ : 0) : array + fields_);
  }
  OwnCells other(int field) const { return cells(field + (swapped_ ? 0 : fields_)); }
  void swap() { swapped_ = !swapped_; }
  bool swapped() const { return swapped_; }
  StencilArrays arrays(int count) const {
    StencilArrays all;
    for (int k = 0; k < count; ++k) all.in[k] = now(k).data;
    for (int f = 0; f < fields_; ++f) all.out[f] = other(f).data;
    all.stride[0] = stride_[0];
    all.stride[1] = stride_[1];
    return all;
  }
  std::int64_t bytes() const { return static_cast<std::int64_t>(memory_.size() * memory_.front().bytes()); }

 private:
  OwnCells cells(int k) const {
    OwnCells found;
    found.data = memory_[static_cast<std::size_t>(k)].data();
    for (std::size_t axis = 0; axis < 3; ++axis) found.extent[axis] = grid_.extent[axis];
    found.stride[0] = stride_[0];
    found.stride[1] = stride_[1];
    found.value_bytes = value_bytes_;
    return found;
  }

  Grid grid_;
  int fields_, value_bytes_;
  std::int64_t stride_[2] = {};
  bool swapped_ = false;
  std::vector<Array<std::byte>> memory_;  ///< fields, their second arrays, coefficients
};

/// How many steps a kernel may take that is to end in time: by what the last one took.
class LaunchLength {
 public:
  LaunchLength(double longest_s, double step_s) : longest_s_(longest_s), step_s_(8 * step_s + 1e-7) {}
  std::int64_t steps(std::int64_t wanted) const {
    double const most = std::clamp(longest_s_ / step_s_, 1.0, 1e9);
    return std::min(wanted, static_cast<std::int64_t>(most));
  }
  void took(std::int64_t steps, double seconds) { step_s_ = seconds / static_cast<double>(steps) + 1e-9; }

 private:
  double longest_s_, step_s_;
};

/// What blocks wait by.
struct WaitingMemory {
  Array<std::uint64_t> words;
  std::int64_t row_words = 0;
  Array<std::uint32_t> counters{2};  ///< blocks that have arrived at barriers, and whether somebody is lost
  std::uint32_t epoch = 1, arrived = 0;

  void clear() {
    words.clear();
    counters.clear();
    epoch = 1, arrived = 0;
  }
};

class Bound final : public BoundStencil {
 public:
  Bound(StencilProblem const& p, StencilInstance const& instance)
      : problem_(p),
        instance_(instance),
        on_(p.device),
        stream_(std::in_place),
        memory_(std::in_place, p, instance),
        meter_(std::in_place),
        length_(p.longest_launch_s, p.way.step_s) {
    if (p.way.cells == GpuCells::streamed) instance.deal_out(problem_);
    if (p.way.run == RunKind::persistent) {
      waiting_.emplace();
      if (p.way.cells == GpuCells::resident) {
        std::int64_t const value_words = static_cast<std::int64_t>(p.text.value_bytes) / 4;
        waiting_->row_words = (p.grid.extent[2] + 1) / 2 * 2 * value_words;
        waiting_->words = Array<std::uint64_t>(
            static_cast<std::size_t>(2 * instance.fields * p.grid.extent[0] * waiting_->row_words));
      } else {
        blocks_ = instance.blocks_at_once(p);
      }
      waiting_->clear();
    }
    on_.reset();
  }
  ~Bound() override {
    try {
      OnDevice const on(problem_.device);
      graph_.reset();
      waiting_.reset();
      meter_.reset();
      memory_.reset();
      stream_.reset();
    } catch (Error const&) {  // a GPU that has failed has said so before
    }
  }

  void put(int array, CellArray const& cells) override {
    OnDevice const on(problem_.device);
    bool const on_gpu = is_here(cells);
    copy_cells_in(memory_->now(array), cells, on_gpu, *stream_);
    // cells that stay as given are never written
    if (array < instance_.fields) copy_cells_in(memory_->other(array), cells, on_gpu, *stream_);
  }
  void get(int field, CellArray const& cells) const override {
    OnDevice const on(problem_.device);
    copy_cells_out(cells, memory_->now(field), is_here(cells), *stream_);
  }

  bool advance(std::int64_t steps, std::int64_t& taken) override {
    OnDevice const on(problem_.device);
    taken = 0;
    if (problem_.way.run == RunKind::persistent) {
      bool const odd = problem_.way.cells == GpuCells::resident && steps % 2 != 0;
      if (!in_one_kernel(odd ? steps - 1 : steps, taken)) return false;
      if (odd) advance_alone();
      taken = steps;
      return true;
    }
    int const a_pass = problem_.way.block_steps();
    pass_after_pass(steps / a_pass);
    for (std::int64_t k = steps / a_pass * a_pass; k < steps; ++k) step();
    stream_->wait();
    taken = steps;
    return true;
  }
  void advance_alone() override {
    OnDevice const on(problem_.device);
    step();
    stream_->wait();
  }

  double largest(int field) const override {
    OnDevice const on(problem_.device);
    return meter_->largest(memory_->other(field), memory_->now(field), *stream_);
  }
  std::array<std::uint64_t, 3> squares(int field, double top) const override {
    OnDevice const on(problem_.device);
    return meter_->squares(memory_->other(field), memory_->now(field), top, *stream_);
  }
  bool is_finite(int field) const override {
    OnDevice const on(problem_.device);
    return meter_->is_finite(memory_->now(field), *stream_);
  }

  std::string describe() const override {
    StencilWay const& way = problem_.way;
    auto const text = [](auto number) { return std::to_string(number); };
    if (way.cells == GpuCells::resident) {
      ResidentPlan const& plan = way.resident;
      return text(plan.y.count) + " x " + text(plan.x.count) + " tiles in registers, " +
             text(plan.shape.warps) + " warps of " + text(plan.shape.rows) + " rows x " +
             text(plan.shape.width) + " cells a thread, exchanged every " + text(plan.y.depth) + " steps";
    }
    if (way.cells == GpuCells::streamed)
      return text(way.streamed.shape.steps) + " steps in one pass, " + text(way.streamed.x.count) +
             " strips x " + text(way.streamed.chunks) + " chunks, " + text(way.streamed.shape.width) +
             " cells a thread";
    if (way.run == RunKind::persistent)
      return "a thread a cell, " + text(blocks_) + " blocks at a barrier each step";
    return "a thread a cell, a kernel a step";
  }
  std::int64_t device_bytes() const override {
    return memory_->bytes() + (waiting_ ? static_cast<std::int64_t>(waiting_->words.bytes()) : 0);
  }

 private:
  bool is_here(CellArray const& cells) const {
    int const device = device_of(cells.data);
    if (device < 0 || device == problem_.device) return device >= 0;
    throw Error(ErrorCode::usage, "an array in the memory of GPU " + std::to_string(device) +
                                      " for a stencil on GPU " + std::to_string(problem_.device) +
                                      " (kernels copy it there). Use memory of that GPU, or of the host.");
  }

  void step() {
    instance_.step(problem_, memory_->arrays(instance_.arrays), stream_->get());
    memory_->swap();
  }
  void pass() {
    if (problem_.way.cells != GpuCells::streamed) return step();
    instance_.pass(problem_, memory_->arrays(instance_.arrays), stream_->get());
    memory_->swap();
  }

  void pass_after_pass(std::int64_t passes) {
    constexpr std::int64_t recorded = 64;  // passes of a graph: it begins and ends with the same arrays
    std::int64_t done = 0;
    if (problem_.way.run == RunKind::graph && passes > 2 * recorded) {
      if (memory_->swapped()) pass(), ++done;
      if (!graph_) {
        graph_.emplace();
        graph_->take_recorded(*stream_, [&](HOSTLESS_GPU(Stream_t)) {
          for (std::int64_t k = 0; k < recorded; ++k) pass();
        });
        graph_->instantiate(*stream_);
      }
      for (; done + recorded <= passes; done += recorded) graph_->launch(*stream_);
    }
    for (; done < passes; ++done) pass();
  }

  bool in_one_kernel(std::int64_t steps, std::int64_t& taken) {
    while (taken < steps) {
      std::int64_t some = length_.steps(steps - taken);
      if (some < steps - taken) some += some % 2;
      auto const begin = Clock::now();
      launch_waiting(some);
      std::uint32_t lost = 0;
      check(HOSTLESS_GPU(MemcpyAsync)(&lost, waiting_->counters.data() + 1, sizeof lost,
                                      HOSTLESS_GPU(MemcpyDeviceToHost), stream_->get()),
            "reading how a kernel ended");
      stream_->wait();
      if (lost != 0) {
        waiting_->clear();
        return false;
      }
      length_.took(some, std::chrono::duration<double>(Clock::now() - begin).count());
      // a step after the other ends in one of two arrays by turns
      if (problem_.way.cells == GpuCells::resident || some % 2 != 0) memory_->swap();
      taken += some;
    }
    return true;
  }
  void launch_waiting(std::int64_t steps) {
    auto const deadline_ns = static_cast<std::uint64_t>(problem_.deadline_s * 1e9);
    StencilArrays const arrays = memory_->arrays(instance_.arrays);
    std::uint32_t* const lost = waiting_->counters.data() + 1;
    if (problem_.way.cells != GpuCells::resident) {
      BlockBarrier const barrier{waiting_->counters.data(), lost, waiting_->arrived, deadline_ns};
      instance_.steps_with_barriers(problem_, arrays, steps, blocks_, barrier, stream_->get());
      waiting_->arrived += static_cast<std::uint32_t>(blocks_) * static_cast<std::uint32_t>(steps - 1);
      return;
    }
    auto const exchanges = static_cast<std::uint32_t>(steps / problem_.way.depth() + 1);
    if (waiting_->epoch > poison - 2 - exchanges) waiting_->clear();
    ResidentMemory const memory{waiting_->words.data(), waiting_->row_words, waiting_->epoch, lost,
                                deadline_ns};
    instance_.resident(problem_, arrays, steps, memory, stream_->get());
    waiting_->epoch += exchanges;
  }

  StencilProblem problem_;
  StencilInstance const& instance_;
  std::optional<OnDevice> on_;  // while it is made
  std::optional<Stream> stream_;
  std::optional<CellMemory> memory_;
  mutable std::optional<ChangeMeter> meter_;
  LaunchLength length_;
  std::optional<WaitingMemory> waiting_;
  std::optional<Graph> graph_;
  int blocks_ = 1;
};

}  // namespace

std::unique_ptr<BoundStencil> make_bound_stencil(StencilProblem const& problem,
                                                 StencilInstance const& instance) {
  return std::make_unique<Bound>(problem, instance);
}

}  // namespace hostless::gpu
