#pragma once
// Who steps the cells of `hostless stencil`: ranks of the processor, or GPUs.

#include <memory>
#include <string>

#include "hostless/stencil/gpu_stencil.hpp"
#include "ranks.hpp"
#include "stencil/grid_options.hpp"
#include "stencil/stencil_report.hpp"

namespace hostless {

struct GpuWords {
  std::string gpus = "0";  ///< a number of them, or which, between commas
  std::string run = "auto", cells = "auto";

  void add(CLI::App& command);
  /// A GPU for each part of the grid; empty: the processor.
  std::vector<int> devices() const;
  /// depth and block_steps  of the command's other words. Errors  usage  words that are none
  GpuStencilOptions options(DealtOptions const& dealt) const;
  /// Errors  usage  what only ranks on the processor have, or only a GPU
  void check(CLI::App const& command, RankOptions const& ranks) const;
};

/// What steps this rank's cells, and of the report what of it is known. Collective.
/// Errors  as StencilRun and GpuStencilRun; environment  no GPU, or not enough memory; usage  several ranks
/// on a GPU
std::unique_ptr<CellStepper> make_stepper(GpuWords const& gpu, DealtOptions const& dealt,
                                          Transport& transport, Grid const& grid, StencilKernel const& kernel,
                                          std::vector<std::int64_t> const& shape, StencilReport& report);

}  // namespace hostless
