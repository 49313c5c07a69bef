// What a step of a stencil costs on any machine, by the number of nodes: no cell is stored.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "hostless/base/error.hpp"
#include "hostless/model/counts.hpp"
#include "hostless/model/step_price.hpp"
#include "machine/memory_option.hpp"
#include "numbers.hpp"
#include "predict/predict_commands.hpp"
#include "predict/scaling.hpp"
#include "stencil/array_axes.hpp"
#include "stencil/grid_options.hpp"

namespace hostless {
namespace {

struct StencilPrediction {
  ScalingOptions scaling;
  GridWords words;
  int ranks_per_node = 0, depth = 1;
  MemoryKind memory = MemoryKind::gpu;

  int axes() const { return static_cast<int>(words.size.size()); }
  StencilKernel kernel() const { return words.kernel(axes(), words.type == "fp32" ? 4 : 8); }
};

int ranks_per_node(StencilPrediction const& o, MachineModel const& machine) {
  return ranks_of_node(machine, o.memory, o.ranks_per_node);
}

// Sides in turn doubled, the first axis first.
std::vector<std::int64_t> grown(std::vector<std::int64_t> size, int times) {
  constexpr std::int64_t most_cells = std::int64_t{1} << 53;
  for (std::size_t axis = 0; times > 1; times /= 2, axis = (axis + 1) % size.size()) {
    double cells = 2;
    for (std::int64_t const extent : size) cells *= static_cast<double>(extent);
    if (times % 2 != 0)
      throw Error(ErrorCode::usage,
                  "--scaling weak to numbers of nodes that are no power of two times the first (sides are "
                  "doubled in turn). Give --nodes 1..64, or others so.");
    if (cells > static_cast<double>(most_cells))
      throw Error(ErrorCode::usage,
                  "--scaling weak to more than 2^53 cells (no grid has more). Give fewer nodes, or a smaller "
                  "--size.");
    size[axis] *= 2;
  }
  return size;
}

struct Boxes {
  BoxPartition boxes;
  CoarsePatterns halo;  // of several ranks
};

// A round is a halo of `depth` steps and as many steps; rounds of one star's step need no corners.
Boxes boxes_of(StencilPrediction const& o, Grid const& grid, int ranks) {
  StencilKernel const kernel = o.kernel();
  Boxes all{{grid, least_surface(grid, kernel.radius, ranks)}, {}};
  std::array<std::int64_t, 3> depth{};
  for (std::size_t axis = 0; axis < 3; ++axis) depth[axis] = std::int64_t{o.depth} * kernel.radius[axis];
  if (ranks > 1) all.halo = box_strips(all.boxes, depth, kernel.star && o.depth == 1);
  return all;
}

ScalingPoint point_of(StencilPrediction const& o, MachineModel const& machine, int nodes, Scaling& scaling) {
  int const per_node = ranks_per_node(o, machine);
  StencilKernel const kernel = o.kernel();
  Grid const grid = o.words.grid(grown(o.words.size, o.scaling.growth(nodes)));
  ScalingPoint point;
  point.nodes = nodes;
  point.ranks = nodes * per_node;
  std::optional<Boxes> dealt;
  try {
    dealt = boxes_of(o, grid, point.ranks);
  } catch (Error const& e) {
    if (e.code() != ErrorCode::usage) throw;
    point.refused = e.what();  // boxes that are too thin: fewer nodes have prices
    return point;
  }
  auto const value = static_cast<double>(kernel.value_bytes);
  std::optional<ExchangePrice> exchange;
  if (point.ranks > 1) {
    auto const counts = count_strips(dealt->halo, NodeMap::blocks(point.ranks, per_node));
    auto ways = price_ways(machine, counts, o.memory, kernel.fields * value);
    PricedWay& way = ways[cheapest(ways)];
    point.way = words_of(way);
    exchange = std::move(way.price);
  }
  // Of depths that box_strips has not refused: it counts step by step.
  StepShare const share =
      step_share(dealt->boxes, kernel.radius, o.depth, (2 * kernel.fields + kernel.coefficients) * value);
  StepPrice const p = price_step(machine, share, o.memory, per_node, exchange ? &*exchange : nullptr);
  point.seconds = p.seconds;
  point.least = p.least;
  point.most = p.most;
  point.parts = {p.cells, p.repeated, p.halo, p.launches};
  scaling.add_words(p.sources, p.notes);
  return point;
}

int predict_stencil(StencilPrediction const& o) {
  o.scaling.check();
  if (o.words.size.empty())
    throw Error(ErrorCode::usage,
                "--size is missing (a step costs by its cells). Give --size NY,NX or NZ,NY,NX.");
  o.words.check();
  Scaling scaling;
  MachineModel const machine = o.scaling.load(scaling.notes);
  o.scaling.check_ranks(ranks_per_node(o, machine));
  price_step(machine, {1, 0, 0, 8, 1}, o.memory, 1, nullptr);  // which names what is missing of cells first
  scaling.title = fmt::format("{} on {} cells, {}, on {}", o.words.problem, shape_text(o.words.size),
                              o.words.type.empty() ? "fp64" : o.words.type, machine.name);
  scaling.what = "a step";
  scaling.parts = {"cells", "repeated", "halo", "launches"};
  for (int const nodes : o.scaling.nodes) scaling.add(point_of(o, machine, nodes, scaling), o.scaling.weak);
  return show_scaling(o.scaling, scaling,
                      {{"version", 1},
                       {"machine", machine.name},
                       {"problem", o.words.problem},
                       {"size", o.words.size},
                       {"type", o.words.type.empty() ? "fp64" : o.words.type},
                       {"boundary", o.words.boundary_text()},
                       {"depth", o.depth},
                       {"scaling", o.scaling.weak ? "weak" : "strong"},
                       {"ranks_per_node", ranks_per_node(o, machine)},
                       {"memory", name(o.memory)}});
}

}  // namespace

void add_predict_stencil(CLI::App& predict, std::function<int()>& work) {
  auto o = std::make_shared<StencilPrediction>();
  CLI::App* c = predict.add_subcommand("stencil",
                                       "What a step of a stencil costs on a machine, by the number of nodes");
  c->footer(
      "Cells are counted, and nothing is stored. Each array is read once from memory in a step, each field "
      "written.");
  o->words.add_grid(*c);
  o->words.add_boundary(*c);
  o->scaling.add(*c,
                 "strong: one grid; weak: one that grows from the first number of nodes on (default strong)");
  c->add_option("--depth", o->depth,
                "Steps between two exchanges; cells of other ranks are updated again meanwhile")
      ->capture_default_str()
      ->check(whole_number(1));
  c->add_option("--ranks-per-node", o->ranks_per_node, "0: as many as nodes have GPUs, or cores")
      ->capture_default_str()
      ->check(whole_number(0));
  add_memory(*c, o->memory)->description("Where the arrays lie: gpu or host (default gpu)");
  c->callback([o, &work] { work = [o] { return predict_stencil(*o); }; });
}

}  // namespace hostless
