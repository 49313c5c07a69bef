#include "run/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/counted.hpp"
#include "base/nearest.hpp"
#include "hostless/base/error.hpp"

namespace hostless {

char const* name(RunKind kind) {
  switch (kind) {
    case RunKind::host:
      return "host";
    case RunKind::persistent:
      return "persistent";
    case RunKind::graph:
      return "graph";
    case RunKind::stream:
      return "stream";
    case RunKind::automatic:
      return "auto";
  }
  return "host";
}

char const* name(HostWaits waits) {
  switch (waits) {
    case HostWaits::when_needed:
      return "when_needed";
    case HostWaits::every_iteration:
      return "every_iteration";
    case HostWaits::every_sum:
      return "every_sum";
  }
  return "unknown";
}

HostWaits host_waits_from(char const* text) {
  for (HostWaits waits : {HostWaits::when_needed, HostWaits::every_iteration, HostWaits::every_sum})
    if (std::strcmp(text, name(waits)) == 0) return waits;
  throw Error(ErrorCode::usage,
              std::string("unknown waits '") + text + "'. Use when_needed, every_iteration or every_sum.");
}

RunKind run_kind_from(char const* text) {
  for (RunKind kind :
       {RunKind::host, RunKind::persistent, RunKind::graph, RunKind::stream, RunKind::automatic}) {
    if (std::strcmp(text, name(kind)) == 0) return kind;
  }
  throw Error(ErrorCode::usage, std::string("unknown run '") + text +
                                    "' (it decides who executes the method)." +
                                    did_you_mean(text, {"host", "persistent", "graph", "stream", "auto"}) +
                                    " Use host, persistent, graph, stream or "
                                    "auto.");
}

namespace {

// What a library or the host carries does not reach into a kernel that runs to the end; and kernels that wait
// for the host need a GPU of their own.
void check_gpu_transport(RunOptions const& run, int ranks) {
  auto refuse = [](std::string const& text) { throw Error(ErrorCode::usage, text); };
  char const* const transport = name(run.gpu_transport);
  GpuTransportFacts const& facts = facts_of(run.gpu_transport);
  bool const by_library = facts.actor == GpuTransportFacts::Actor::library,
             by_host = facts.actor == GpuTransportFacts::Actor::host;
  if (run.gpus == 0 && run.gpu_transport != GpuTransport::automatic)
    refuse(fmt::format(
        "GPU transport {} on the processor is refused (there are no GPUs to carry between). Use --gpus, or "
        "drop --gpu-transport.",
        transport));
  if (!by_library && !by_host) return;
  if (run.kind == RunKind::persistent && !facts.symmetric_memory)
    refuse(fmt::format(
        "the persistent run with GPU transport {} is refused (nobody can carry for a kernel that runs to "
        "the end of the solve). Use --run {}, or --gpu-transport peer.",
        transport, by_library || ranks <= run.gpus ? "graph or stream" : "stream"));
  if (run.kind == RunKind::graph && by_host && ranks > run.gpus)
    refuse(
        fmt::format("the graph run with GPU transport {} and {} on {} is refused (one rank's kernels that "
                    "wait for the host would keep another's waiting). Use --run stream, --gpus {}, or "
                    "--gpu-transport peer.",
                    transport, counted(ranks, "rank"), counted(run.gpus, "GPU"), ranks));
  if (by_library && !facts.by_nodes &&
      ranks > run.gpus)  // with nodes, ranks that reach others alone need one
    refuse(
        fmt::format("GPU transport {} with {} on {} is refused (the library takes one rank a GPU). Use "
                    "--gpus {}, or --gpu-transport host or peer.",
                    transport, counted(ranks, "rank"), counted(run.gpus, "GPU"), ranks));
}

}  // namespace

void check_gpus(RunOptions const& run, int ranks) {
  auto refuse = [](std::string const& text) { throw Error(ErrorCode::usage, text); };
  if (run.gpus < 0)
    refuse(fmt::format("{} (there cannot be fewer than none). Use 0 or more.", counted(run.gpus, "GPU")));
  if (run.oversubscribe && run.gpus == 0)
    refuse(
        "oversubscribed GPUs on the processor are refused (there are none to share). Use --gpus, or drop "
        "--oversubscribe.");
  if (run.gpus > 0 && ranks > run.gpus && !run.oversubscribe)
    refuse(fmt::format(
        "{} on {} are refused (they would wait for each other in every iteration). Use --gpus {}, or "
        "--oversubscribe to test.",
        counted(ranks, "rank"), counted(run.gpus, "GPU"), ranks));
  check_gpu_transport(run, ranks);
}

namespace host {

Engine::Engine(State& s, SweepPlan const& p, Multiplier m, Exchange& e, RunOptions const& o, WaitLimits l)
    : state(s),
      columns(&s, 1),
      sweep(p),
      tiling(p.tiling),
      multiplier(m),
      exchange(e),
      options(o),
      limits(l),
      barrier(o.threads, l),
      partials_(static_cast<std::size_t>(p.tiling.slices) * widest_sum),
      level_(static_cast<std::size_t>(power_of_two(p.tiling.slices))) {
  forget_observed();
  if (multiplier.matrix != nullptr) {
    order = multiplier.matrix->order();
    return;
  }
  for (int slice = 0; slice < tiling.slices; ++slice)
    (sweep.awaits(slice) ? order.boundary : order.interior).push_back(slice);
}

void Engine::work_on(std::span<State> states, std::int64_t stride, bool stores_past_caches) {
  columns = states;
  column_stride = stride;
  past_caches = stores_past_caches;
  partials_.resize(
      std::max(partials_.size(), states.size() * static_cast<std::size_t>(tiling.slices) * widest_sum));
}

void Engine::begin_sum(Gate gate, int width) {
  std::array<double, static_cast<std::size_t>(widest_sum) * most_columns> mine{};
  auto const slices = static_cast<std::size_t>(tiling.slices);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (!columns[c].open(gate)) continue;
    double const* const partials = partial(0, static_cast<int>(c));
    for (int k = 0; k < width; ++k) {
      for (std::size_t s = 0; s < slices; ++s)
        level_[s] = partials[s * widest_sum + static_cast<std::size_t>(k)];
      std::fill(level_.begin() + static_cast<std::ptrdiff_t>(slices), level_.end(), 0.0);
      mine[c * static_cast<std::size_t>(width) + static_cast<std::size_t>(k)] =
          tree(level_.data(), static_cast<int>(level_.size()));
    }
  }
  if (options.stop_requested && options.stop_requested()) exchange.raise(control::stop);
  exchange.begin_sum({mine.data(), static_cast<std::size_t>(width) * columns.size()});
}

void Engine::observe() {
  if (!options.observer) return;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    State const& column = columns[c];
    if (!column.begun || column.iteration == observed_[c]) continue;
    observed_[c] = column.iteration;
    if (options.observer(column, static_cast<int>(c))) exchange.raise(control::stop);
  }
}

void Engine::finish_exchange() {
  bool const complete = exchange.wait();
  if (!complete) failed.store(true, std::memory_order_release);
}

// The status is a latch: a numerical ending that a complete sum supported stays.
void Engine::lose() {
  failed.store(true, std::memory_order_release);
  if (!exchange.lost()) exchange.leave();
  for (Exchange* const one : exchanges_of_context)
    if (!one->lost()) one->leave();
  for (State& column : columns)
    if (column.status == Status::running) column.status = Status::peer_lost;
}

}  // namespace host
}  // namespace hostless
