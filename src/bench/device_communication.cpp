#include "bench/device_communication.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/counted.hpp"
#include "solve/gpu_solver/gpu_loader.hpp"
#include "solve/gpu_solver/gpu_ranks.hpp"
#include "solve/gpu_solver/gpu_solver.hpp"

namespace hostless::bench {
namespace {

Error unseen(std::string const& what) {
  return Error(
      ErrorCode::environment,
      what + " (GPUs do not see what was stored to them). Report it with `hostless doctor --prove`.");
}

double median_of(std::vector<double> values) {
  auto const middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Timing rising(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {std::move(seconds)};
}

/// One rank's kernel, bound once.
class DeviceSteps {
 public:
  DeviceSteps(Matrix const& matrix, RunOptions const& run, gpu::Communication what, Protocol const& protocol)
      : group_(matrix.transport().group()) {
    SolveOptions options;
    options.run.kind = RunKind::persistent;
    options.run.gpus = run.gpus;
    options.run.oversubscribe = run.oversubscribe;
    options.limits = protocol.limits;
    group_.together([&] {
      if (what.values < 1 || what.values > gpu::widest_sum)
        throw Error(ErrorCode::usage, fmt::format("sums of {} (one carries 1 to {}).",
                                                  counted(what.values, "value"), gpu::widest_sum));
      check_gpu_ranks(matrix, options.run);
      gpu_solver_ = std::make_unique<gpu::GpuSolver>(matrix, options, 0, &what);
    });
    gpu_solver_->bind();
    std::vector<double> numbers;  // of own rows
    for (std::int64_t row = 0; row < matrix.owned(); ++row)
      numbers.push_back(static_cast<double>(matrix.global_row(row)));
    gpu_solver_->refresh(numbers, 0);
  }
  gpu::GpuSolver const& gpu_solver() const { return *gpu_solver_; }

  struct Seconds {
    double clock = 0, events = 0;  ///< of a step, of the slowest rank
  };
  /// steps >= 0
  Seconds run(int steps, bool record) {
    State state;
    state.limit = steps;
    state.wants_true_residual = false;
    gpu_solver_->bound().record(record);
    gpu::Cost const before = gpu_solver_->cost();
    gpu_solver_->communicate(state);
    if (state.status == Status::peer_lost)
      throw Error(ErrorCode::peer_lost, "a rank was lost in a barrier (nothing more can be timed).");
    group_.together([&] {
      if (state.status == Status::breakdown)
        throw unseen(fmt::format("step {}: the sum over all blocks and ranks is {:.17g} instead of {:.17g}",
                                 state.iteration, state.rr, state.value[ScalarIndex::measured]));
      if (state.status != Status::iteration_limit)
        throw unseen(fmt::format("steps ended as {} after {}", name(state.status), state.iteration));
    });
    gpu::Cost const after = gpu_solver_->cost();
    double const one = 1.0 / std::max(1, steps);
    return {one * group_.max(after.clock_s - before.clock_s),
            one * group_.max(after.device_s - before.device_s)};
  }

 private:
  Group& group_;
  std::unique_ptr<gpu::GpuSolver> gpu_solver_;
};

}  // namespace

std::vector<PhaseTiming> phases_of(gpu::Trace const& trace) {
  std::vector<PhaseTiming> phases;
  std::size_t const barriers =
      trace.blocks == 0 ? 0 : trace.entries.size() / static_cast<std::size_t>(trace.blocks);
  for (gpu::Phase const phase :
       {gpu::Phase::publish, gpu::Phase::begin, gpu::Phase::sweep, gpu::Phase::rows}) {
    std::vector<double> work, together, flagged_words, decision;
    for (std::size_t at = 0; at < trace.entries.size(); ++at) {
      gpu::TraceEntry const& entry = trace.entries[at];
      // The first barrier waits for the launches of others, the second for who was late there.
      if (entry.end == 0 || entry.phase != phase || at % barriers < 2) continue;
      auto const between = [&](std::uint64_t from, std::uint64_t to) {
        return static_cast<double>(to - from) / trace.hertz;
      };
      work.push_back(between(entry.begin, entry.arrived));
      together.push_back(between(entry.arrived, entry.together));
      flagged_words.push_back(between(entry.together, entry.met));
      decision.push_back(between(entry.met, entry.end));
    }
    if (!work.empty())
      phases.push_back({phase, static_cast<int>(work.size()), median_of(work), median_of(together),
                        median_of(flagged_words), median_of(decision)});
  }
  return phases;
}

DeviceTiming device_steps(Matrix const& matrix, RunOptions const& run, gpu::Communication what,
                          Protocol const& protocol) {
  DeviceSteps steps(matrix, run, what, protocol);
  steps.run(protocol.warm_up, false);
  DeviceTiming timing;
  for (int round = 0; round < protocol.repeat; ++round) {
    auto const seconds = steps.run(protocol.steps, false);
    timing.by_clock.step_s.push_back(seconds.clock);
    timing.by_events.step_s.push_back(seconds.events);
  }
  timing.by_clock = rising(timing.by_clock.step_s);
  timing.by_events = rising(timing.by_events.step_s);
  constexpr int recorded = 600;  // about as many barriers as are
  steps.run(std::min(protocol.steps, recorded), true);
  timing.phases = phases_of(steps.gpu_solver().trace());
  timing.device = steps.gpu_solver().device_name();
  timing.kernel = steps.gpu_solver().describe();
  return timing;
}

Matrix uncoupled_matrix(Transport& transport, int gpus) {
  Tiling const tiling;
  std::int64_t const rows = std::int64_t{tiling.slices} * Tiling::accumulators,
                     first = rows * transport.group().rank();
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(rows) + 1),
      columns(static_cast<std::size_t>(rows));
  std::iota(offsets.begin(), offsets.end(), 0);
  std::iota(columns.begin(), columns.end(), first);
  std::vector<double> const ones(static_cast<std::size_t>(rows), 1.0);
  MatrixOptions options;
  options.partition = MatrixOptions::Partition::contiguous;
  options.block = 1;
  options.slices = tiling.slices;
  options.gpus = gpus;
  return Matrix::from_rows(transport, first, offsets, columns, ones, options);
}

std::vector<DevicePingPong> device_ping_pong(int first, int second, std::vector<std::size_t> const& bytes,
                                             Protocol const& protocol) {
  gpu::Library const& library = gpu::library();
  int const devices = library.devices();
  for (int const device : {first, second})
    if (device < 0 || device >= devices)
      throw Error(ErrorCode::usage, fmt::format("GPU {} (this machine has {}). Use fewer.", device, devices));
  std::vector<DevicePingPong> all;
  for (std::size_t const size : bytes) {
    if (size == 0 || size % 8 != 0)
      throw Error(ErrorCode::usage,
                  fmt::format("messages of {} between GPUs (kernels store doubles). Use a multiple of 8.",
                              counted(size, "byte")));
    for (bool const by_flagged_words : {true, false}) {
      gpu::PingPongRequest request{first, second, size, by_flagged_words};
      request.warm_up = protocol.warm_up;
      request.steps = steps_of(size, protocol.steps);
      request.repeat = protocol.repeat;
      request.deadline_s = protocol.limits.later_s;
      gpu::PingPongFacts const facts = library.ping_pong(request);
      if (!facts.problem.empty()) throw unseen(facts.problem);
      all.push_back({size, by_flagged_words, request.steps, rising(facts.clock_s), rising(facts.events_s)});
    }
  }
  return all;
}

}  // namespace hostless::bench
