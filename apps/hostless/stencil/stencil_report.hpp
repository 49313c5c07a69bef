#pragma once
// What `hostless stencil` says of its run: JSON, a summary, and a line for each look.

#include <string>
#include <vector>

#include "hostless/solve/provenance.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "stencil/steps.hpp"

namespace hostless {

struct StencilReport {
  Provenance provenance;
  NamedStencil const* stencil = nullptr;
  std::vector<std::int64_t> size;
  std::vector<std::string> boundary;  ///< one for each axis
  std::vector<double> parameters;
  std::size_t value_bytes = 8;
  std::string initial, transport, route, checkpoint;
  std::vector<std::string> output;
  int ranks = 1, depth = 1, block_steps = 1;
  bool shares_cells = false;  ///< StencilRun::shares_cells
  std::vector<int> ranks_along;
  std::vector<int> gpu_of_part;  ///< empty: on the processor
  std::string gpu, gpu_run;      ///< of a run on GPUs: the first one's name, and how they step
  std::int64_t resumed_at = 0;
  StepsTaken taken;

  std::int64_t cells() const;
  double step_s() const;  ///< 0: no step was taken, or how long they took is not known: a rank was lost
};

std::string to_json(StencilReport const& report);
std::string summary(StencilReport const& report);
std::string line_of(NamedStencil const& stencil, StencilChange const& change);

}  // namespace hostless
