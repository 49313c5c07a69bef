#pragma once

#include <vector>

#include "hostless/model/machine_model.hpp"

namespace hostless {

/// Steps of a square grid in two dimensions on ranks with a halo each, as a measured or predicted run has
/// them.
struct GridRun {
  double edge_cells = 0.0;  ///< of the whole grid
  int nodes = 1;
  int ranks_per_node = 1;
  double step_seconds = 0.0;  ///< measured; not read by predictions
};

/// What a step costs a rank: per_step + per_cell x cells + the messages of its edges, those of two directions
/// where ranks are dealt in two. With `clear_to_send` each send is let go by a small message of its receiver,
/// which hides behind the work on the cells: max(per_cell x cells, small messages) stands for the second
/// term.
struct GridModel {
  double per_step = 0.0;        ///< seconds: launches, packing, corners
  double per_cell = 0.0;        ///< seconds
  double bytes_per_cell = 8.0;  ///< of an edge
  bool clear_to_send = false;
};

/// Seconds of a step; messages have the price of the machine between nodes, in GPU memory.
/// Local. Errors  usage      no cells, nodes or ranks
///                bad_input  the machine has no data of such messages
double step_seconds(MachineModel const& machine, GridModel const& model, GridRun const& run);

/// Fits per_step and per_cell to measured runs by relative residuals (Huber's loss); the rest of `model` is
/// kept. Errors  usage  fewer than two runs; those of step_seconds
GridModel fit_grid(MachineModel const& machine, GridModel model, std::vector<GridRun> const& runs);

}  // namespace hostless
