#pragma once
// Who steps the cells of `hostless stencil`: ranks of the processor, or a GPU.

#include <memory>
#include <string>

#include "hostless/stencil/stencil.hpp"
#include "ranks.hpp"
#include "stencil/grid_options.hpp"
#include "stencil/stencil_report.hpp"

namespace hostless {

struct GpuWords {
  int gpus = 0;
  std::string run = "auto", cells = "auto";

  void add(CLI::App& command);
  /// Errors  usage  more than one GPU; what only ranks on the processor have, or only a GPU
  void check(CLI::App const& command, RankOptions const& ranks) const;
};

/// What steps this rank's cells, and of the report what of it is known. Collective.
/// Errors  as StencilRun and GpuStencilRun; environment  no GPU, or not enough memory; usage  several ranks
/// on a GPU
std::unique_ptr<CellStepper> make_stepper(GpuWords const& gpu, DealtOptions const& dealt,
                                          Transport& transport, Grid const& grid, StencilKernel const& kernel,
                                          std::vector<std::int64_t> const& shape, StencilReport& report);

}  // namespace hostless
