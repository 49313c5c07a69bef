#include "stencil/grid_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/bytes_text.hpp"
#include "base/counted.hpp"
#include "base/nearest.hpp"
#include "hostless/base/error.hpp"
#include "hostless/machine/memory.hpp"
#include "hostless/machine/nodes.hpp"
#include "lists.hpp"
#include "numbers.hpp"
#include "solve/matrix/memory_need.hpp"
#include "stencil/array_axes.hpp"

namespace hostless {
namespace {

constexpr std::int64_t most_cells = std::int64_t{1} << 53;

std::vector<std::int64_t> size_in(std::string const& text) {
  auto const size = extents_in("--size", text, most_cells);
  std::int64_t cells = 1;
  for (std::int64_t const extent : size) {
    if (extent > most_cells / cells)
      throw CLI::ValidationError("--size", fmt::format("'{}' (more than 2^53 cells fit nowhere)", text));
    cells *= extent;
  }
  return size;
}

std::vector<std::string> names_of_stencils() {
  std::vector<std::string> names;
  for (NamedStencil const& one : named_stencils()) names.emplace_back(one.name);
  return names;
}

std::vector<std::string> boundaries_in(std::string const& text) {
  auto const known = one_of({"dirichlet", "neumann", "periodic"});
  auto words = words_in(text);
  for (std::string& word : words)
    if (std::string const problem = known(word); !problem.empty())
      throw CLI::ValidationError("--boundary", problem);
  if (words.size() > 3)
    throw CLI::ValidationError("--boundary", fmt::format("'{}' (an array has up to three axes)", text));
  return words;
}

}  // namespace

std::string shape_text(std::vector<std::int64_t> const& shape) {
  return fmt::format("{}", fmt::join(shape, " x "));
}

void GridWords::add_grid(CLI::App& command) {
  command
      .add_option("--problem", problem, fmt::format("The stencil: {}", fmt::join(names_of_stencils(), ", ")))
      ->required()
      ->check(one_of(names_of_stencils()));
  command.add_option_function<std::string>(
      "--size", [this](std::string const& text) { size = size_in(text); },
      "Cells along each axis, in the order of NumPy's: NY,NX or NZ,NY,NX (512x512 too)");
  command.add_option("--type", type, "fp32 or fp64 [fp64]")->check(one_of({"fp32", "fp64"}));
}

void GridWords::add(CLI::App& command) {
  add_grid(command);
  command.add_option("--parameter", parameters, "A number of the stencil, as k=0.2; repeatable")
      ->take_all()
      ->expected(1);
}

void GridWords::add_boundary(CLI::App& command) {
  command.add_option_function<std::string>(
      "--boundary", [this](std::string const& text) { boundary = boundaries_in(text); },
      "dirichlet (outermost cells stay as given), neumann (mirrored) or periodic: one for all axes, or one "
      "for "
      "each between commas [dirichlet]");
}

void GridWords::take(StencilCheckpointGrid const& from, std::string const& file) {
  if (from.stencil != problem)
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: is of the stencil {}, and this run has {} (it would not go on "
                            "bit for bit). Give what the checkpoint was made with.",
                            file, from.stencil, problem));
  if (size.empty()) size = from.shape;
  if (type.empty()) type = from.value_bytes == 4 ? "fp32" : "fp64";
  if (boundary.empty())
    for (GridBoundary const one : from.boundary) boundary.emplace_back(name(one));
  auto const& names = stencil().parameters;
  auto const& axes = stencil().axes;
  bool const is_finite = std::all_of(from.parameters.begin(), from.parameters.end(),
                                     [](double value) { return std::isfinite(value); });
  if (std::find(axes.begin(), axes.end(), static_cast<int>(from.shape.size())) == axes.end() || !is_finite ||
      names.size() != from.parameters.size())
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{}: its grid of {} and its parameters {} are none that {} can have (no run of it "
                    "wrote them). Use another checkpoint.",
                    file, counted(from.shape.size(), "axis", "axes"), fmt::join(from.parameters, ", "),
                    problem));
  for (std::size_t k = 0; k < names.size(); ++k) {
    std::string const head = std::string(names[k]) + "=";
    if (std::none_of(parameters.begin(), parameters.end(),
                     [&](std::string const& given) { return given.starts_with(head); }))
      parameters.push_back(head + fmt::format("{}", from.parameters[k]));
  }
}

std::string GridWords::boundary_text() const {
  return boundary.empty() ? "dirichlet" : fmt::format("{}", fmt::join(boundary, ","));
}

void GridWords::check() const {
  static_cast<void>(values(stencil().axes.front()));
  if (!size.empty()) static_cast<void>(grid(size));
}

std::vector<double> GridWords::values(int axes) const {
  NamedStencil const& known = stencil();
  std::vector<std::string> const names(known.parameters.begin(), known.parameters.end());
  std::vector<double> all = defaults_of(known, axes);
  std::vector<bool> given(all.size(), false);
  for (std::string const& text : parameters) {
    std::size_t const sign = text.find('=');
    if (sign == std::string::npos || sign == 0 || sign + 1 == text.size())
      throw Error(ErrorCode::usage,
                  fmt::format("--parameter {} (it is no name=number). Write it as k=0.2.", text));
    std::string const name = text.substr(0, sign), number = text.substr(sign + 1);
    auto const found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      throw Error(
          ErrorCode::usage,
          fmt::format(
              "--parameter {}: {} has no '{}' ({}).{} Drop it, or correct its name.", text, known.name, name,
              names.empty() ? "it has no parameters" : fmt::format("it has {}", fmt::join(names, ", ")),
              did_you_mean(name, names)));
    auto const k = static_cast<std::size_t>(found - names.begin());
    if (given[k])
      throw Error(
          ErrorCode::usage,
          fmt::format("--parameter {}: {} is given twice (one would be ignored). Drop one.", text, name));
    given[k] = true;
    char* stop = nullptr;
    all[k] = std::strtod(number.c_str(), &stop);
    if (*stop != '\0' || !std::isfinite(all[k]))
      throw Error(ErrorCode::usage,
                  fmt::format("--parameter {}: '{}' is no finite number (every cell is computed with it). "
                              "Write it as k=0.2.",
                              text, number));
  }
  return all;
}

Grid GridWords::grid(std::vector<std::int64_t> const& shape) const {
  NamedStencil const& known = stencil();
  int const axes = static_cast<int>(shape.size());
  if (std::find(known.axes.begin(), known.axes.end(), axes) == known.axes.end())
    throw Error(ErrorCode::usage,
                fmt::format("{} on a grid of {} (it is a stencil of {}). Give that "
                            "many numbers, or arrays of that many axes.",
                            problem, counted(axes, "axis", "axes"),
                            known.axes.size() == 1 ? counted(known.axes[0], "axis", "axes")
                                                   : fmt::format("{} axes", fmt::join(known.axes, " or "))));
  if (boundary.size() > 1 && boundary.size() != shape.size())
    throw Error(ErrorCode::usage,
                fmt::format("--boundary {} on {} (there is one for all axes, or one for each). Give {}.",
                            fmt::join(boundary, ","), counted(axes, "axis", "axes"), axes));
  Grid grid;
  grid.boundary.fill(GridBoundary::dirichlet);
  auto const of_array = grid_axes(axes);
  for (std::size_t k = 0; k < of_array.size(); ++k) {
    grid.extent[of_array[k]] = shape[k];
    if (!boundary.empty())
      grid.boundary[of_array[k]] = grid_boundary_from(boundary[boundary.size() > 1 ? k : 0].c_str());
  }
  return grid;
}

StencilKernel GridWords::kernel(int axes, std::size_t value_bytes) const {
  return make_stencil(problem, axes, value_bytes, values(axes));
}

void DealtOptions::add(CLI::App& command) {
  command.add_option_function<std::string>(
      "--ranks-along",
      [this](std::string const& text) {
        constexpr std::int64_t most = 1 << 24;
        ranks_along.clear();
        for (std::int64_t const n : extents_in("--ranks-along", text, most))
          ranks_along.push_back(static_cast<int>(n));
      },
      "Boxes along each axis, as 4x2 [chosen: least surface]");
  command.add_option("--depth", depth, "Steps between two exchanges, 0: chosen")
      ->capture_default_str()
      ->check(whole_number(0));
  command
      .add_option(
          "--block-steps", block_steps,
          "Steps in one pass over memory, at most those between two exchanges; 0: chosen, 1: none blocked")
      ->capture_default_str()
      ->check(whole_number(0));
  command.add_option("--route", route, "How halos travel: direct, two_step, three_step, split or leader")
      ->capture_default_str()
      ->check(one_of({"direct", "two_step", "three_step", "split", "leader"}));
  command
      .add_option("--ranks-per-node", ranks_per_node,
                  "Declares the nodes, which routes know; 0 finds them by host name")
      ->capture_default_str()
      ->check(whole_number(0));
}

StencilOptions DealtOptions::options(Group& group, int axes) const {
  StencilOptions options;
  options.depth = depth;
  options.block_steps = block_steps;
  options.nodes = find_nodes(group, ranks_per_node);
  group.together([&] {
    options.route = route_from(route.c_str());
    if (ranks_along.empty()) return;
    if (static_cast<int>(ranks_along.size()) != axes)
      throw Error(ErrorCode::usage,
                  fmt::format("--ranks-along {} on {} (each axis has a number). Give {}.",
                              fmt::join(ranks_along, "x"), counted(axes, "axis", "axes"), axes));
    auto const of_array = grid_axes(axes);
    options.ranks_along.fill(1);
    for (std::size_t k = 0; k < of_array.size(); ++k) options.ranks_along[of_array[k]] = ranks_along[k];
  });
  return options;
}

void require_memory_for(Group& group, StencilKernel const& kernel, std::vector<std::int64_t> const& shape) {
  NodeMap const machines = find_machines(group);
  std::size_t const here = machines.ranks_of(machines.node[static_cast<std::size_t>(group.rank())]).size();
  double need = 2.0 * kernel.fields * static_cast<double>(kernel.value_bytes);
  for (std::int64_t const extent : shape) need *= static_cast<double>(extent);
  need *= static_cast<double>(here) / group.size();
  group.together([&] {
    MemoryRoom const room = machine_memory_room();
    if (need <= room.bytes || !sizes_are_checked()) return;
    throw Error(
        ErrorCode::environment,
        fmt::format("{} on {} cells: at least {} of memory are needed on a machine ({} are there: {}). Use "
                    "more machines or a smaller grid; HOSTLESS_SIZE_CHECK=0 tries it all the same.",
                    kernel.name, shape_text(shape), bytes_text(need), bytes_text(room.bytes), room.limit));
  });
}

}  // namespace hostless
