#include "hostless/model/grid_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "hostless/base/error.hpp"
#include "hostless/model/price.hpp"
#include "model/robust_line.hpp"

namespace hostless {
namespace {

/// A run without the model's two parameters.
struct StepParts {
  double cells = 0, messages = 0, clear_to_send = 0, measured = 0;
  double seconds(double per_step, double per_cell, bool waits) const {
    double const work = per_cell * cells;
    return per_step + messages + (waits ? std::max(work, clear_to_send) : work);
  }
};

double message(MachineModel const& machine, double bytes) {
  return price(machine, {MessageSpan::off_node, MemoryKind::gpu, bytes, 1, 1}).seconds;
}

// The most square grid of so many ranks.
int shorter_side(int ranks) {
  int side = static_cast<int>(std::sqrt(static_cast<double>(ranks)));
  while (ranks % side != 0) --side;
  return side;
}

StepParts parts_of(MachineModel const& machine, GridModel const& model, GridRun const& run) {
  if (!(run.edge_cells > 0) || run.nodes < 1 || run.ranks_per_node < 1)
    throw Error(
        ErrorCode::usage,
        fmt::format(
            "{} cells an edge, {} nodes of {} ranks (there is nothing to step). Give at least one of each.",
            run.edge_cells, run.nodes, run.ranks_per_node));
  int const ranks = run.nodes * run.ranks_per_node, side = shorter_side(ranks), other = ranks / side;
  constexpr double small = 8;  // bytes of what lets a send go
  StepParts parts;
  parts.measured = run.step_seconds;
  parts.cells = run.edge_cells * run.edge_cells / ranks;
  for (auto const& [cut, along] : {std::pair{side, other}, std::pair{other, side}}) {
    if (cut == 1) continue;  // nobody beside it in this direction
    double const edge = run.edge_cells / along * model.bytes_per_cell;
    parts.messages += 2 * message(machine, edge);
    parts.clear_to_send += 2 * message(machine, small);
  }
  return parts;
}

double cost_of(std::vector<StepParts> const& all, double per_step, double per_cell, bool waits) {
  double cost = 0;
  for (StepParts const& parts : all)
    cost += huber_loss(parts.seconds(per_step, per_cell, waits) / parts.measured - 1);
  return cost;
}

}  // namespace

double step_seconds(MachineModel const& machine, GridModel const& model, GridRun const& run) {
  return parts_of(machine, model, run).seconds(model.per_step, model.per_cell, model.clear_to_send);
}

GridModel fit_grid(MachineModel const& machine, GridModel model, std::vector<GridRun> const& runs) {
  if (runs.size() < 2)
    throw Error(ErrorCode::usage,
                fmt::format("{} runs (two parameters are fitted). Give at least two.", runs.size()));
  std::vector<StepParts> all;
  std::vector<double> rates, times;
  for (GridRun const& run : runs) {
    all.push_back(parts_of(machine, model, run));
    rates.push_back(all.back().measured / all.back().cells);
    times.push_back(all.back().measured);
  }
  model.per_cell = *std::min_element(rates.begin(), rates.end());
  model.per_step = *std::min_element(times.begin(), times.end());
  double best = cost_of(all, model.per_step, model.per_cell, model.clear_to_send);
  for (double factor = 1.5; factor > 1.00001;) {  // the best of eight neighbours, ever nearer ones
    GridModel const at = model;
    for (double step : {1 / factor, 1.0, factor})
      for (double cell : {1 / factor, 1.0, factor})
        if (double const cost = cost_of(all, at.per_step * step, at.per_cell * cell, model.clear_to_send);
            cost < best)
          best = cost, model.per_step = at.per_step * step, model.per_cell = at.per_cell * cell;
    if (model.per_step == at.per_step && model.per_cell == at.per_cell) factor = std::sqrt(factor);
  }
  return model;
}

}  // namespace hostless
