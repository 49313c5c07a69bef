// What the halo of a grid in boxes costs, from counts alone: no matrix, no plan and no rank is made.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/counted.hpp"
#include "hostless/base/error.hpp"
#include "hostless/model/counts.hpp"
#include "lists.hpp"
#include "machine/machine_commands.hpp"
#include "machine/memory_option.hpp"
#include "model/route_prices.hpp"
#include "numbers.hpp"
#include "standard_output.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

constexpr int most_ranks = 1 << 17;
constexpr std::int64_t most_side = std::int64_t{1} << 20;

struct HaloRequest {
  std::string machine, json;
  std::vector<std::int64_t> size;  // in the order of NumPy's axes
  int ranks = 1, ranks_per_node = 0, depth = 1;
  double item_bytes = 8;
  bool corners = false, periodic = false;
  MemoryKind memory = MemoryKind::host;
};

// Of two axes the grid has the first and the last.
std::size_t axis_of(HaloRequest const& o, std::size_t k) {
  return k + 1 == o.size.size() ? 2 : k == 0 ? 0 : 1;
}

std::vector<int> ranks_along(HaloRequest const& o, BoxPartition const& boxes) {
  std::vector<int> along;
  for (std::size_t k = 0; k < o.size.size(); ++k) along.push_back(boxes.ranks_along[axis_of(o, k)]);
  return along;
}

BoxPartition boxes_of(HaloRequest const& o) {
  Grid grid;
  std::array<int, 3> radius{0, 0, 0};
  for (std::size_t k = 0; k < o.size.size(); ++k) {
    std::size_t const axis = axis_of(o, k);
    grid.extent[axis] = o.size[k];
    grid.boundary[axis] = o.periodic ? GridBoundary::periodic : GridBoundary::dirichlet;
    radius[axis] = 1;
  }
  return {grid, least_surface(grid, radius, o.ranks)};
}

int ranks_per_node(HaloRequest const& o, MachineModel const& machine) {
  int const there = o.memory == MemoryKind::host ? machine.node.cores() : machine.node.gpus();
  if (o.ranks_per_node > 0) return o.ranks_per_node;
  if (there > 0) return there;
  throw Error(ErrorCode::usage,
              fmt::format("{} has no GPUs (a rank each is meant). Use --memory host.", machine.name));
}

// Routes that cut strips are counted cell by cell, where cells are not too many for seconds.
std::vector<PricedWay> ways_of(HaloRequest const& o, MachineModel const& machine, BoxPartition const& boxes,
                               NodeMap const& nodes) {
  std::array<std::int64_t, 3> depth{};
  for (std::size_t axis = 0; axis < 3; ++axis) depth[axis] = boxes.grid.extent[axis] > 1 ? o.depth : 0;
  CoarsePatterns const coarse = box_strips(boxes, depth, !o.corners);
  std::int64_t cells = 0;
  for (auto const& rank : coarse.weights) cells = std::accumulate(rank.begin(), rank.end(), cells);
  constexpr std::int64_t most_cells = 1 << 20;
  std::vector<Pattern> by_cell;
  if (cells <= most_cells) by_cell = box_patterns(boxes, depth, !o.corners);
  std::vector<PricedWay> ways;
  for (Route route : all_routes) {
    if (cuts_items(route) && by_cell.empty()) {
      for (DataPath path : paths_of(o.memory))
        ways.push_back({route,
                        path,
                        {},
                        fmt::format("not counted: it cuts strips, and there are {} "
                                    "(at most {} are dealt one by one)",
                                    counted(cells, "cell"), most_cells)});
      continue;
    }
    ExchangeCounts const counts = cuts_items(route)
                                      ? count_exchange(route, by_cell, nodes)
                                      : count_exchange(route, coarse.patterns, nodes, coarse.weights);
    for (PricedWay& way : price_ways(machine, {counts}, o.memory, o.item_bytes))
      ways.push_back(std::move(way));
  }
  return ways;
}

int print_halo(HaloRequest const& o) {
  MachineModel const machine = load_machine(o.machine);
  BoxPartition const boxes = boxes_of(o);
  NodeMap const nodes = NodeMap::blocks(o.ranks, ranks_per_node(o, machine));
  auto const ways = ways_of(o, machine, boxes, nodes);
  if (!o.json.empty()) {
    nlohmann::ordered_json json = {{"version", 1},           {"size", o.size},
                                   {"ranks", o.ranks},       {"ranks_along", ranks_along(o, boxes)},
                                   {"nodes", nodes.nodes()}, {"ranks_per_node", ranks_per_node(o, machine)},
                                   {"corners", o.corners},   {"periodic", o.periodic},
                                   {"depth", o.depth},       {"memory", name(o.memory)}};
    json.update(json_of(machine, ways, o.item_bytes));
    write_text(o.json, json_text(json));
  }
  if (o.json == "-") return 0;
  std::string const cells = fmt::format("{}", fmt::join(o.size, " x ")),
                    along = fmt::format("{}", fmt::join(ranks_along(o, boxes), " x "));
  std::string const prices = table(machine, ways, o.item_bytes);  // an error before anything is printed
  print("{} cells in {} boxes, {} on {}\n", cells, along, counted(o.ranks, "rank"),
        counted(nodes.nodes(), "node"));
  print("{}", prices);
  return 0;
}

}  // namespace

void add_machine_halo(CLI::App& machine, std::function<int()>& work) {
  auto o = std::make_shared<HaloRequest>();
  CLI::App* c = machine.add_subcommand(
      "halo", "What the halo of a grid in boxes costs by every route, for any number of ranks");
  c->add_option("--machine", o->machine, "A name of `machine list`, or a file")->required();
  c->add_option_function<std::string>(
       "--size", [o](std::string const& text) { o->size = extents_in("--size", text, most_side); },
       "Cells along each axis, the last one contiguous: N, or N,N, or N,N,N (64x64 too)")
      ->required();
  c->add_option("--ranks", o->ranks, "A box each")->required()->check(whole_number(1, most_ranks));
  c->add_option("--ranks-per-node", o->ranks_per_node,
                "In the order of the boxes; 0: as many as the machine's nodes have cores, or GPUs")
      ->capture_default_str()
      ->check(whole_number(0));
  c->add_option("--depth", o->depth, "Cells of the halo")->capture_default_str()->check(whole_number(1));
  c->add_option("--item-bytes", o->item_bytes, "Of a cell, all fields together")
      ->capture_default_str()
      ->check(real_number(false));
  c->add_flag("--corners", o->corners, "With edges and corners, as stencils that look along diagonals need");
  c->add_flag("--periodic", o->periodic, "Every axis wraps");
  add_memory(*c, o->memory);
  c->add_option("--json", o->json, "Write it as JSON; - for standard output");
  c->callback([o, &work] { work = [o] { return print_halo(*o); }; });
}

}  // namespace hostless
