#include "stencil/who_steps.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <numeric>

#include "base/counted.hpp"
#include "hostless/base/error.hpp"
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
      throw Error(ErrorCode::usage,
                  fmt::format("{} with --gpus {} are refused (one rank steps all cells of GPUs). "
                              "Start one, or leave out --gpus.",
                              counted(group.size(), "rank"), gpu.gpus));
    run = std::make_unique<GpuStencilRun>(grid, kernel, gpu.options(dealt));
  });
  report.gpu_of_part = gpu.devices();
  report.gpu = run->device_name();
  report.gpu_run = run->describe();
  report.depth = run->depth();
  report.block_steps = run->block_steps();
  report.ranks_along.assign(report.size.size(), 1);
  return run;
}

}  // namespace

void GpuWords::add(CLI::App& command) {
  command
      .add_option(
          "--gpus", gpus,
          "Step on so many GPUs, or on those named between commas: a part of the grid each (a GPU named "
          "twice has two); 0: on the processor")
      ->capture_default_str()
      ->check([](std::string const& text) {
        for (std::string word : words_in(text))
          if (std::string const problem = whole_number(0, most_workers)(word); !problem.empty())
            return problem;
        return std::string();
      });
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
                  "resident (the grid stays in registers), cached (what fits stays in shared memory); auto")
      ->capture_default_str()
      ->check(one_of({"auto", "plain", "streamed", "resident", "cached"}));
}

std::vector<int> GpuWords::devices() const {
  std::vector<int> devices = numbers_in("--gpus", gpus, 0);
  if (devices.size() > 1) return devices;
  devices.resize(static_cast<std::size_t>(devices.front()));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

GpuStencilOptions GpuWords::options(DealtOptions const& dealt) const {
  GpuStencilOptions options;
  options.run = run_kind_from(run.c_str());
  options.cells = gpu_cells_from(cells.c_str());
  options.depth = dealt.depth;
  options.block_steps = dealt.block_steps;
  options.devices = devices();
  return options;
}

void GpuWords::check(CLI::App const& command, RankOptions const& ranks) const {
  auto const given = [&](char const* option) { return command.get_option(option)->count() > 0; };
  auto const refuse = [](std::string const& text) { throw Error(ErrorCode::usage, text); };
  if (devices().empty()) {
    for (char const* const option : {"--run", "--cells"})
      if (given(option))
        refuse(fmt::format(
            "{} on the processor is refused (it says how a GPU steps). Give --gpus 1, or drop it.", option));
    return;
  }
  if (ranks.ranks > 1)
    refuse(
        fmt::format("--ranks {} with --gpus {} is refused (one rank steps all cells of GPUs). Drop --ranks.",
                    ranks.ranks, gpus));
  for (char const* const option : {"--ranks-along", "--route", "--ranks-per-node"})
    if (given(option))
      refuse(fmt::format("{} with --gpus {} is refused (it is about ranks of the processor). Drop it.",
                         option, gpus));
}

std::unique_ptr<CellStepper> make_stepper(GpuWords const& gpu, DealtOptions const& dealt,
                                          Transport& transport, Grid const& grid, StencilKernel const& kernel,
                                          std::vector<std::int64_t> const& shape, StencilReport& report) {
  Group& group = transport.group();
  for (std::size_t const a : grid_axes(static_cast<int>(shape.size())))
    report.boundary.emplace_back(name(grid.boundary[a]));
  if (!gpu.devices().empty()) return on_gpu(gpu, dealt, group, grid, kernel, report);
  require_memory_for(group, kernel, shape);
  auto run = std::make_unique<StencilRun>(transport, grid, kernel,
                                          dealt.options(group, static_cast<int>(shape.size())));
  for (std::size_t const a : grid_axes(static_cast<int>(shape.size())))
    report.ranks_along.push_back(run->partition().ranks_along[a]);
  report.depth = run->depth();
  report.block_steps = run->block_steps();
  report.shares_cells = run->shares_cells();
  return run;
}

}  // namespace hostless
