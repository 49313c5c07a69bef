#include "stencil/who_steps.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "hostless/base/error.hpp"
#include "hostless/stencil/gpu_stencil.hpp"
#include "lists.hpp"
#include "numbers.hpp"
#include "stencil/array_axes.hpp"

namespace hostless {
namespace {

std::unique_ptr<CellStepper> on_gpu(GpuWords const& gpu, DealtOptions const& dealt, Group& group,
                                    Grid const& grid, StencilKernel const& kernel, StencilReport& report) {
  std::unique_ptr<GpuStencilRun> run;
  group.together([&] {
    if (group.size() > 1)
      throw Error(ErrorCode::usage, fmt::format("{} ranks with --gpus 1 (one rank steps all cells of a GPU). "
                                                "Start one, or leave out --gpus.",
                                                group.size()));
    GpuStencilOptions options;
    options.run = run_kind_from(gpu.run.c_str());
    options.cells = gpu_cells_from(gpu.cells.c_str());
    options.depth = dealt.depth;
    options.block_steps = dealt.block_steps;
    run = std::make_unique<GpuStencilRun>(grid, kernel, options);
  });
  report.gpus = 1;
  report.gpu = run->device_name();
  report.gpu_run = run->describe();
  report.depth = run->depth();
  report.block_steps = run->block_steps();
  report.ranks_along.assign(report.size.size(), 1);
  return run;
}

}  // namespace

void GpuWords::add(CLI::App& command) {
  command.add_option("--gpus", gpus, "Step on so many GPUs, 1 as yet; 0: on the processor")
      ->capture_default_str()
      ->check(whole_number(0));
  command
      .add_option(
          "--run", run,
          "Of a GPU, who pulls the trigger: stream, graph or persistent; auto: what a model takes for "
          "the fastest")
      ->capture_default_str()
      ->check(one_of({"auto", "stream", "graph", "persistent"}));
  command
      .add_option("--cells", cells,
                  "Of a GPU: plain (a thread a cell), streamed (several steps in one pass over memory), "
                  "resident (the grid stays in registers); auto")
      ->capture_default_str()
      ->check(one_of({"auto", "plain", "streamed", "resident"}));
}

void GpuWords::check(CLI::App const& command, RankOptions const& ranks) const {
  auto const given = [&](char const* option) { return command.get_option(option)->count() > 0; };
  auto const refuse = [](std::string const& text) { throw Error(ErrorCode::usage, text); };
  if (gpus == 0) {
    for (char const* const option : {"--run", "--cells"})
      if (given(option))
        refuse(
            fmt::format("{} on the processor (it says how a GPU steps). Give --gpus 1, or drop it.", option));
    return;
  }
  if (gpus > 1)
    refuse(
        fmt::format("--gpus {}: a stencil is stepped on one GPU (what tiles exchange stays in its memory). "
                    "Use --gpus 1, or --ranks {} on the processor.",
                    gpus, gpus));
  if (ranks.ranks > 1)
    refuse(fmt::format("--ranks {} with --gpus 1 (one rank steps all cells of a GPU). Drop --ranks.",
                       ranks.ranks));
  for (char const* const option : {"--ranks-along", "--route", "--ranks-per-node"})
    if (given(option))
      refuse(fmt::format("{} with --gpus 1 (it is about ranks of the processor). Drop it.", option));
}

std::unique_ptr<CellStepper> make_stepper(GpuWords const& gpu, DealtOptions const& dealt,
                                          Transport& transport, Grid const& grid, StencilKernel const& kernel,
                                          std::vector<std::int64_t> const& shape, StencilReport& report) {
  Group& group = transport.group();
  for (std::size_t const a : grid_axes(static_cast<int>(shape.size())))
    report.boundary.emplace_back(name(grid.boundary[a]));
  if (gpu.gpus > 0) return on_gpu(gpu, dealt, group, grid, kernel, report);
  require_memory_for(group, kernel, shape);
  auto run = std::make_unique<StencilRun>(transport, grid, kernel,
                                          dealt.options(group, static_cast<int>(shape.size())));
  for (std::size_t const a : grid_axes(static_cast<int>(shape.size())))
    report.ranks_along.push_back(run->partition().ranks_along[a]);
  report.depth = run->depth();
  report.block_steps = run->block_steps();
  return run;
}

}  // namespace hostless
