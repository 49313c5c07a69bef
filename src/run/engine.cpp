#include "run/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

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

RunKind run_kind_from(char const* text) {
  for (RunKind kind :
       {RunKind::host, RunKind::persistent, RunKind::graph, RunKind::stream, RunKind::automatic}) {
    if (std::strcmp(text, name(kind)) == 0) return kind;
  }
  throw Error(ErrorCode::usage,
              std::string("unknown run '") + text +
                  "' (it decides who executes the method). Use host, persistent, graph, stream or "
                  "auto.");
}

void check_gpus(RunOptions const& run, int ranks) {
  auto refuse = [](std::string const& text) { throw Error(ErrorCode::usage, text); };
  if (run.gpus < 0)
    refuse(fmt::format("{} GPUs (there cannot be fewer than none). Use 0 or more.", run.gpus));
  if (run.oversubscribe && run.gpus == 0)
    refuse(
        "oversubscribed GPUs on the processor (there are none to share). Use --gpus, or drop "
        "--oversubscribe.");
  if (run.gpus > 0 && ranks > run.gpus && !run.oversubscribe)
    refuse(fmt::format(
        "{} ranks on {} GPU{} (they would wait for each other in every iteration). Use --gpus {}, or "
        "--oversubscribe to test.",
        ranks, run.gpus, run.gpus == 1 ? "" : "s", ranks));
}

namespace host {

Engine::Engine(State& s, HaloPlan const& p, Multiplier m, Exchange& e, RunOptions const& o, WaitLimits l)
    : state(s),
      plan(p),
      tiling(p.tiling),
      multiplier(m),
      exchange(e),
      options(o),
      limits(l),
      barrier(o.lanes, l),
      partials_(static_cast<std::size_t>(p.tiling.slices) * widest_sum),
      level_(static_cast<std::size_t>(power_of_two(p.tiling.slices))) {
  if (multiplier.matrix != nullptr) {
    order = multiplier.matrix->order();
    return;
  }
  for (int slice = 0; slice < tiling.slices; ++slice) {
    auto const i = static_cast<std::size_t>(slice);
    bool const needs = i < plan.needs.size() && !plan.needs[i].empty();
    (needs ? order.boundary : order.interior).push_back(slice);
  }
}

void Engine::begin_sum(int width) {
  std::array<double, widest_sum> mine{};
  auto const slices = static_cast<std::size_t>(tiling.slices);
  for (int k = 0; k < width; ++k) {
    for (std::size_t s = 0; s < slices; ++s)
      level_[s] = partials_[s * widest_sum + static_cast<std::size_t>(k)];
    std::fill(level_.begin() + static_cast<std::ptrdiff_t>(slices), level_.end(), 0.0);
    mine[static_cast<std::size_t>(k)] = tree(level_.data(), static_cast<int>(level_.size()));
  }
  if (options.stop_requested && options.stop_requested()) exchange.raise(control::stop);
  exchange.begin_sum({mine.data(), static_cast<std::size_t>(width)});
}

void Engine::observe() {
  if (!options.observer || !state.begun || state.iteration == observed_) return;
  observed_ = state.iteration;
  if (options.observer(state)) exchange.raise(control::stop);
}

// The status is a latch: a numerical ending that a complete sum supported stays.
void Engine::lose() {
  failed.store(true, std::memory_order_release);
  if (!exchange.lost()) exchange.leave();
  if (state.status == Status::running) state.status = Status::peer_lost;
}

}  // namespace host
}  // namespace hostless
