#pragma once

#include <string>
#include <vector>

#include "hostless/model/machine_model.hpp"
#include "hostless/model/plan_price.hpp"
#include "hostless/plan/boxes.hpp"

namespace hostless {

/// What a rank does between two exchanges of a stencil; of several ranks, the most of any in each number.
struct StepShare {
  double cells = 0.0;       ///< of its box
  double repeated = 0.0;    ///< of others' boxes that it updates too, in all steps of a round
  double border = 0.0;      ///< of its cells, those whose first step of a round waits for the halo
  double cell_bytes = 0.0;  ///< that an update moves: each array once from memory, each field once to it
  int steps = 1;            ///< of a round
};

/// Of the boxes of a grid whose halos are `steps` steps deep.
/// radius      of the stencil, along each axis
/// Errors  usage  as box_halo
StepShare step_share(BoxPartition const& boxes, std::array<int, 3> radius, int steps, double cell_bytes);

/// Seconds of a step; `seconds` = cells + repeated + halo + launches.
struct StepPrice {
  double seconds = 0.0;
  double cells = 0.0, repeated = 0.0;  ///< by the bandwidth of memory
  double halo = 0.0;                   ///< what the inner cells of a round do not hide, a step's part of it
  double exchange = 0.0;               ///< the whole exchange of a round
  double launches = 0.0;               ///< what launches take longer than the work that they start
  double least = 0.0, most = 0.0;      ///< the model's own error, as IterationPrice has it
  std::vector<std::string> sources, notes;
};

/// Prices a step by the most that any rank does.
///
/// cells     bytes over the machine's rate for long arrays: of a GPU, or a rank's part of a node's
/// halo      exchange less the inner cells of the round's first step, or nothing
/// launches  of a GPU's kernels, one a step and three (pack, await, borders) a round; not counted without data
///
/// exchange  price of the halo, or nullptr where nothing is exchanged
/// Local, deterministic.
/// Errors  usage      no cells, steps or ranks; more border cells than cells
///         bad_input  the machine has no data of that memory
StepPrice price_step(MachineModel const& machine, StepShare const& share, MemoryKind memory,
                     int ranks_per_node, ExchangePrice const* exchange);

}  // namespace hostless
