// A stencil's arrays in the memory of one GPU or of several, and the runs that step them.
#include "stencil/gpu/bound_stencil.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "device/graph.hpp"
#include "stencil/gpu/parts/grid_part.hpp"
#include "transport/memory/paths.hpp"

namespace hostless::gpu {
namespace {

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

class Bound final : public BoundStencil {
 public:
  Bound(StencilProblem const& p, StencilInstance const& instance)
      : problem_(p), length_(p.longest_launch_s, p.way.step_s) {
    std::vector<StencilPart> const& parts = p.way.parts;
    for (StencilPart const& one : parts)
      for (StencilPart const& other : parts) open(one.device, other.device);
    for (std::size_t k = 0; k < parts.size(); ++k)
      parts_.push_back(std::make_unique<GridPart>(p, instance, k));
    std::size_t const count = parts.size();
    bool const wraps = p.grid.boundary[0] == GridBoundary::periodic;
    for (std::size_t k = 0; k < count && count > 1; ++k)
      parts_[k]->stand_between(wraps || k > 0 ? parts_[(k + count - 1) % count].get() : nullptr,
                               wraps || k + 1 < count ? parts_[(k + 1) % count].get() : nullptr);
  }
  ~Bound() override {
    try {
      OnDevice const on(first().device());
      graph_.reset();
    } catch (Error const&) {  // a GPU that has failed has said so before
    }
  }

  void put(int array, CellArray const& cells) override {
    bool const on_gpu = is_here(cells);
    for (auto const& part : parts_) part->put(array, cells, on_gpu);
    halo_left_ = 0;
  }
  void get(int field, CellArray const& cells) const override {
    bool const on_gpu = is_here(cells);
    for (auto const& part : parts_) part->get(field, cells, on_gpu);
  }

  bool advance(std::int64_t steps, std::int64_t& taken) override {
    OnDevice const on(first().device());  // and back to what was in use
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
    wait();
    taken = steps;
    return true;
  }
  void advance_alone() override {
    OnDevice const on(first().device());
    step();
    wait();
  }

  double largest(int field) const override {
    double most = 0;
    for (auto const& part : parts_) {
      double const one = part->largest(field);
      if (!std::isnan(most) && !(one <= most)) most = one;  // NaN too
    }
    return most;
  }
  std::array<std::uint64_t, 3> squares(int field, double top) const override {
    std::array<std::uint64_t, 3> all{};
    for (auto const& part : parts_) {
      auto const one = part->squares(field, top);
      for (std::size_t k = 0; k < all.size(); ++k) all[k] += one[k];
    }
    return all;
  }
  bool is_finite(int field) const override {
    return std::all_of(parts_.begin(), parts_.end(),
                       [&](auto const& part) { return part->is_finite(field); });
  }

  std::string describe() const override {
    StencilWay const& way = first().problem().way;
    auto const text = [](auto number) { return std::to_string(number); };
    std::string told = "a thread a cell, a kernel a step";
    if (way.cells == GpuCells::resident) {
      ResidentPlan const& plan = way.resident;
      told = text(plan.y.count) + " x " + text(plan.x.count) + " tiles in registers, " +
             text(plan.shape.warps) + " warps of " + text(plan.shape.rows) + " rows x " +
             text(plan.shape.width) + " cells a thread, exchanged every " + text(plan.y.depth) + " steps";
    } else if (way.is_in_planes()) {
      PlanesPlan const& plan = first().problem().way.planes;
      told = text(plan.shape.steps) + " steps in one pass, " + text(plan.y.count) + " x " +
             text(plan.x.count) + " windows x " + text(plan.chunks) + " chunks, " +
             text(plan.shape.threads_y) + " x " + text(plan.shape.threads_x) + " threads of " +
             text(plan.shape.rows) + " x " + text(plan.shape.width) + " cells";
    } else if (way.cells == GpuCells::streamed) {
      told = text(way.streamed.shape.steps) + " steps in one pass, " + text(way.streamed.x.count) +
             " strips x " + text(way.streamed.chunks) + " chunks, " + text(way.streamed.shape.width) +
             " cells a thread";
    } else if (way.is_split()) {
      told = first().split().describe(way.cells == GpuCells::cached);
    } else if (way.run == RunKind::persistent) {
      told = "a thread a cell, " + text(first().blocks()) + " blocks at a barrier each step";
    }
    if (way.parts.size() == 1) return told;
    std::string devices;
    for (StencilPart const& part : way.parts) {
      if (!devices.empty()) devices += ",";
      devices += text(part.device);
    }
    if (way.cells != GpuCells::resident) told += ", halos every " + text(way.halo_steps) + " steps";
    if (way.halos == GpuHalos::copies) told += " by copies";
    if (way.steps_beside_halos()) told += " by copies beside inner rows";
    return text(way.parts.size()) + " parts on GPUs " + devices + ", " + told;
  }
  std::int64_t device_bytes() const override {
    std::int64_t all = 0;
    for (auto const& part : parts_) all += part->device_bytes();
    return all;
  }
  void silence(int part) override { silent_ = part; }

 private:
  GridPart& first() const { return *parts_.front(); }
  static void open(int from, int to) {
    if (from == to) return;
    OnDevice const on(from);
    std::string const problem = open_path(from, to);
    if (!problem.empty())
      throw Error(ErrorCode::environment,
                  problem +
                      " (parts of a grid read each other's rows there). Use GPUs that are "
                      "linked, or one GPU.");
  }
  bool is_here(CellArray const& cells) const {
    int const device = device_of(cells.data);
    if (device < 0) return false;
    std::string ours;
    for (auto const& part : parts_) {
      if (device == part->device()) {
        settle(device);
        return true;
      }
      if (!ours.empty()) ours += ", ";
      ours += std::to_string(part->device());
    }
    throw Error(ErrorCode::usage, "an array in the memory of GPU " + std::to_string(device) +
                                      " for a stencil on GPU " + ours +
                                      " (kernels copy it there). Use memory of that GPU, or of the host.");
  }
  /// Copies of one part wait for what is queued on its GPU; the array may be on another.
  static void settle(int device) {
    OnDevice const on(device);
    // bounded: by what the caller has queued
    check(HOSTLESS_GPU(DeviceSynchronize)(), "waiting for what is queued on the GPU");
  }
  template <class Use>
  void each(Use const& use) {
    for (auto const& part : parts_) {
      std::optional<OnDevice> on;
      if (parts_.size() > 1) on.emplace(part->device());
      use(*part);
    }
  }
  void wait() {
    each([](GridPart& part) { part.stream().wait(); });
  }

  /// Halos for as many steps as they are deep.
  void fetch_halos() {
    each([](GridPart& part) { part.mark_done(); });
    each([](GridPart& part) {
      part.fetch_halos();
      part.mark_fetched();
    });
    halo_left_ = problem_.way.halo_steps;
    passes_ = 0;
  }
  /// Before work of all parts that takes so many steps.
  void prepare(int steps) {
    if (parts_.size() == 1) return;
    if (halo_left_ < steps) fetch_halos();
    halo_left_ -= steps;
    // the second array of a field from here on is the one that the parts beside have fetched from
    if (++passes_ == 2) each([](GridPart& part) { part.await_fetched(); });
  }
  void step() {
    if (problem_.way.steps_beside_halos()) return step_beside_halos();
    prepare(1);
    each([](GridPart& part) { part.step(); });
  }
  /// Every array that is written had been read by the parts beside when they marked the step before as done.
  void step_beside_halos() {
    each([](GridPart& part) { part.mark_done(); });
    each([](GridPart& part) { part.step_beside_halos(); });
    each([](GridPart& part) { part.memory().swap(); });
  }
  void pass() {
    if (problem_.way.cells != GpuCells::streamed) return step();
    prepare(problem_.way.block_steps());
    each([](GridPart& part) { part.pass(); });
  }

  /// Ends with the arrays it began with, and begins with a fetch of halos, as does what follows it.
  void record(std::int64_t passes) {
    halo_left_ = 0;
    bool const swapped = first().memory().swapped();
    auto graph = std::make_unique<Graph>();
    try {
      graph->take_recorded(first().stream(), [&](HOSTLESS_GPU(Stream_t)) {
        if (parts_.size() > 1) fork();
        for (std::int64_t k = 0; k < passes; ++k) pass();
        if (parts_.size() > 1) join();
      });
      graph->instantiate(first().stream());
    } catch (...) {  // nothing was done to the cells
      each([&](GridPart& part) {
        if (part.memory().swapped() != swapped) part.memory().swap();
      });
      halo_left_ = 0;
      throw;
    }
    graph_ = std::move(graph);
  }
  void fork() {
    first().mark_done();
    for (std::size_t k = 1; k < parts_.size(); ++k) first().hold_done(parts_[k]->stream());
  }
  void join() {
    each([](GridPart& part) { part.mark_done(); });
    for (std::size_t k = 1; k < parts_.size(); ++k) parts_[k]->hold_done(first().stream());
  }
  void pass_after_pass(std::int64_t passes) {
    constexpr std::int64_t about = 64;  // passes of a graph: it begins and ends with the same arrays
    std::int64_t const grain = 2 * std::max(1, problem_.way.depth() / problem_.way.block_steps());
    std::int64_t const recorded = std::max(grain, about / grain * grain);
    std::int64_t done = 0;
    if (problem_.way.run == RunKind::graph && passes > 2 * recorded) {
      if (first().memory().swapped()) pass(), ++done;
      if (parts_.size() > 1) wait();  // the graph is launched on one stream
      if (!graph_) record(recorded);
      for (; done + recorded <= passes; done += recorded) graph_->launch(first().stream());
      first().stream().wait();
      halo_left_ = 0;
    }
    for (; done < passes; ++done) pass();
  }

  bool in_one_kernel(std::int64_t steps, std::int64_t& taken) {
    while (taken < steps) {
      std::int64_t some = length_.steps(steps - taken);
      if (some < steps - taken) some += some % 2;
      auto const begin = Clock::now();
      if (first().must_clear(some)) each([](GridPart& part) { part.clear_waiting(); });
      each([](GridPart& part) { part.keep_cells(); });
      each([](GridPart& part) { part.make_ready(); });
      int number = 0;
      each([&](GridPart& part) {
        if (number++ != silent_) part.launch_waiting(some);
      });
      bool lost = false;
      for (auto const& part : parts_) lost = part->was_lost() || lost;
      halo_left_ = 0;
      if (lost) {
        each([](GridPart& part) {
          part.restore_cells();
          part.clear_waiting();
        });
        return false;
      }
      length_.took(some, std::chrono::duration<double>(Clock::now() - begin).count());
      for (auto const& part : parts_) part->count_waited(some);
      taken += some;
    }
    return true;
  }

  StencilProblem problem_;
  LaunchLength length_;
  std::vector<std::unique_ptr<GridPart>> parts_;
  std::unique_ptr<Graph> graph_;
  int halo_left_ = 0;  ///< steps for which halos are deep enough
  int passes_ = 0;     ///< since they were fetched
  int silent_ = -1;
};

}  // namespace

std::unique_ptr<BoundStencil> make_bound_stencil(StencilProblem const& problem,
                                                 StencilInstance const& instance) {
  return std::make_unique<Bound>(problem, instance);
}

}  // namespace hostless::gpu
