// `hostless bench neighbor`: neighbourhood allgathers, and products of a sparse matrix whose rows are gathered
// so, by every route, beside the MPI library's own.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "../messages.hpp"
#include "base/counted.hpp"
#include "bench/neighbor/neighbors.hpp"
#include "bench/neighbor/row_products.hpp"
#include "file_names.hpp"
#include "hostless/problems/graphs.hpp"
#include "hostless/transport/mpi.hpp"
#include "lists.hpp"
#include "neighbor_gpus.hpp"
#include "neighbor_lines.hpp"
#include "numbers.hpp"
#include "options_of.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

constexpr std::size_t longest_block = std::size_t{1} << 28;
constexpr int most_radius = 1024, most_dimensions = 4;
constexpr char const* library_way = "library";
constexpr std::int64_t most_dense_columns = 65536;

struct NeighborOptions {
  MessageOptions common;
  std::string pattern = "rsg", matrix, gather = "both";
  double density = 0.5;
  std::uint64_t seed = 0;
  int dimension = 2, radius = 1, ranks_per_node = 0;
  std::int64_t columns = 8;
  std::vector<std::string> ways;
  NeighborGpuOptions on_gpus;
  bool multiplies() const { return pattern == "spmm" || pattern == "spmv"; }
  /// Whether lengths of blocks are drawn.
  bool draws_lengths() const {
    return common.gpus > 0 && !multiplies() && on_gpus.has(bench::Collective::alltoallv);
  }
};

/// What is timed, of whatever pattern.
struct TimedWays {
  bench::NeighborWays with;
  std::vector<bench::NeighborTiming> timings;
};

std::vector<std::string> way_names() {
  std::vector<std::string> names{library_way, "auto"};
  for (Route const route : all_routes) names.emplace_back(name(route));
  return names;
}

/// Those that were asked for, or all that there are; of products those of blocks, then those of needed rows.
bench::NeighborWays neighbor_ways(NeighborOptions const& o, Transport& transport) {
  bench::NeighborWays with;
  bool const is_mpi = transport.capabilities().transport == "mpi";
  if (is_mpi) with.vendor = mpi_vendor_of_this_process();
  with.ranks_per_node = o.ranks_per_node;
  for (bool const needed_rows : {false, true}) {
    if (needed_rows ? !o.multiplies() || o.gather == "blocks" : o.multiplies() && o.gather == "rows")
      continue;
    for (std::string const& word : o.ways.empty() ? way_names() : o.ways) {
      if (word == library_way && (needed_rows || (!is_mpi && o.ways.empty()))) continue;
      bench::NeighborWay way{word == library_way, std::nullopt, word, needed_rows};
      if (word != library_way && word != "auto") way.route = route_from(word.c_str());
      with.ways.push_back(way);
    }
  }
  if (with.ways.empty())
    throw Error(
        ErrorCode::usage,
        "--ways library with --gather rows is refused (MPI's own gathers blocks). Name another way, too.");
  return with;
}

/// Of rsg and moore; adds what it is to the report. Collective.
bench::Neighbors neighbors_in(NeighborOptions const& o, Group& group, Json& report) {
  bench::Neighbors mine;
  if (o.pattern == "rsg") {
    mine = bench::random_sparse(group.size(), group.rank(), o.density, o.seed);
    report["density"] = o.density;
    report["seed"] = o.seed;
  } else {
    mine = bench::moore(group.size(), group.rank(), o.dimension, o.radius);
    report["dimension"] = o.dimension;
    report["radius"] = o.radius;
  }
  report["edges"] = group.sum(static_cast<std::int64_t>(mine.destinations.size()));
  return mine;
}

TimedWays time_allgather(NeighborOptions const& o, Transport& transport, Json& report, std::string& what) {
  bench::NeighborAllgather all{neighbor_ways(o, transport), {}, o.common.sizes};
  all.mine = neighbors_in(o, transport.group(), report);
  what = "allgather of a block to all neighbours";
  return {all, bench::neighbor_allgather(transport, all, o.common.measure.protocol)};
}

/// A graph or a preset by its name, or a file. Collective.
std::unique_ptr<RowSource> open_matrix(NeighborOptions const& o, Group& group, std::string& described) {
  auto const is_named = [&](std::vector<std::string> const& names) {
    return std::find(names.begin(), names.end(), o.matrix) != names.end();
  };
  std::unique_ptr<RowSource> source;
  if (is_named(graph_names())) {
    described = describe_graph(o.matrix);
    group.together([&] { source = make_graph(o.matrix, group.size(), group.rank()); });
    return source;
  }
  InputOptions input;
  (is_named(preset_names()) ? input.preset_name : input.file) = o.matrix;
  described = input.describe();
  return input.open(group, nullptr, 0, Symmetry::any);
}

/// Of spmm and spmv; adds what it is to the report. Collective.
bench::RowProduct product_of(NeighborOptions const& o, Transport& transport, Json& report,
                             std::string& what) {
  Group& group = transport.group();
  std::string described;
  auto const source = open_matrix(o, group, described);
  bench::RowProduct product{{}, bench::block_of_rows(group, *source), {}, 1};
  product.mine = bench::neighbors_of(group, product.block);
  if (o.pattern == "spmm") product.columns = o.columns;
  std::int64_t const entries = group.sum(product.block.rows.offset.back());
  report["matrix"] = o.matrix;
  report["input"] = described;
  report["rows"] = product.block.global_rows;
  report["entries"] = entries;
  report["columns"] = product.columns;
  report["edges"] = group.sum(static_cast<std::int64_t>(product.mine.destinations.size()));
  what = fmt::format("product of {} ({}, {}) with {}", o.matrix, counted(product.block.global_rows, "row"),
                     counted(entries, "entry", "entries"), counted(product.columns, "column"));
  return product;
}

TimedWays time_product(NeighborOptions const& o, Transport& transport, Json& report, std::string& what) {
  bench::RowProduct product = product_of(o, transport, report, what);
  static_cast<bench::NeighborWays&>(product) = neighbor_ways(o, transport);
  return {product, bench::row_product(transport, product, o.common.measure.protocol)};
}

int time_neighbors(NeighborOptions const& o, Transport& transport) {
  Group& group = transport.group();
  if (group.size() == 1)
    throw Error(ErrorCode::usage, "one rank (it has nobody to send to). Use --ranks 2, or mpirun.");
  Table const table(o.common, transport);
  Json report = bench_report("neighbor", o.common.provenance, transport);
  report["pattern"] = o.pattern;
  std::string what;
  if (o.common.gpus > 0 && o.multiplies())
    return time_product_on_gpus(o.common, o.on_gpus, product_of(o, transport, report, what), o.gather,
                                transport, report);
  if (o.common.gpus > 0) {
    bench::Neighbors const mine = neighbors_in(o, group, report);
    return time_neighbors_on_gpus(o.common, o.on_gpus, {mine, o.seed}, transport, report);
  }
  auto const [with, timings] =
      o.multiplies() ? time_product(o, transport, report, what) : time_allgather(o, transport, report, what);
  report["steps"] = o.common.measure.protocol.steps;
  report["neighbor"] = Json::array();
  table.line(fmt::format("{}, {}, pattern {} with {}: {}", counted(group.size(), "rank"),
                         report["transport"].get<std::string>(), o.pattern,
                         counted(report["edges"].get<std::int64_t>(), "edge"), what));
  table.line(head_of_ways());
  for (bench::NeighborTiming const& one : timings) {
    report["neighbor"].push_back(row_of_way(with.ways[one.way], one, o.multiplies()));
    table.line(line_of_way(report["neighbor"].back(), one.call));
  }
  write_report(o.common, transport, report);
  return 0;
}

void add_neighbor_options(CLI::App& c, std::shared_ptr<NeighborOptions> const& o) {
  o->common.ranks.add(c, "the neighbourhood");
  c.add_option("matrix", o->matrix,
               fmt::format("Of spmm and spmv: a file (Matrix Market, PETSc binary, .npz), a graph ({}) or a "
                           "preset of `hostless generate`",
                           fmt::join(graph_names(), ", ")));
  c.add_option("--pattern", o->pattern,
               "Who sends to whom: rsg, a random sparse graph; moore, a neighbourhood in a grid of ranks; "
               "spmm and spmv, what a product of a sparse matrix with several columns, or one, needs")
      ->capture_default_str()
      ->check(one_of({"rsg", "moore", "spmm", "spmv"}));
  c.add_option("--density", o->density, "Of rsg: probability of each edge, from 0 to 1")
      ->capture_default_str()
      ->check(real_number(true))
      ->check(CLI::Range(0.0, 1.0));
  c.add_option(
       "--seed", o->seed,
       "Of rsg: another one is another graph; with --gpus, of rsg and moore: lengths of alltoallv's blocks")
      ->capture_default_str()
      ->check(whole_number(std::uint64_t{0}, most_seed));
  c.add_option("--dimension", o->dimension, "Of moore: axes of the grid")
      ->capture_default_str()
      ->check(whole_number(1, most_dimensions));
  c.add_option("--radius", o->radius, "Of moore: steps along each axis that a neighbour may be away")
      ->capture_default_str()
      ->check(whole_number(1, most_radius));
  c.add_option("--columns", o->columns, "Of spmm: columns of the dense matrix")
      ->capture_default_str()
      ->check(whole_number(std::int64_t{1}, most_dense_columns));
  c.add_option(
       "--gather", o->gather,
       "Of spmm and spmv: blocks, all rows of each rank that has one that is needed; rows, those that "
       "are needed; or both")
      ->capture_default_str()
      ->check(one_of({"blocks", "rows", "both"}));
  c.add_option("--ranks-per-node", o->ranks_per_node,
               "Ranks 0 to k-1 are a node, and so on (0: nodes are found by host name)")
      ->capture_default_str()
      ->check(whole_number(0, most_workers));
  c.add_option_function<std::string>(
      "--sizes",
      [o](std::string const& text) {
        o->common.sizes = numbers_in("--sizes", text, std::size_t{1}, longest_block);
      },
      "Of rsg and moore: bytes of a block, as 4096,65536 (default 4 KiB to 4 MiB, with --gpus 1 KiB to 64 "
      "MiB, "
      "each four times the one before)");
  c.add_option_function<std::string>(
      "--ways",
      [o](std::string const& text) {
        o->ways = words_in(text);
        for (std::string word : o->ways)
          if (std::string const problem = one_of(way_names())(word); !problem.empty())
            throw CLI::ValidationError("--ways", problem);
      },
      "Of library (MPI_Neighbor_allgather, for products MPI_Neighbor_allgatherv), auto and the routes those "
      "to "
      "time (default: all)");
  add_neighbor_gpu_options(c, o->common, o->on_gpus);
  o->common.measure.add(c);
}

/// Which patterns an option is of.
struct OfPatterns {
  char const* option;
  std::vector<std::string> patterns;
};

/// Errors  usage  an option of another pattern; a product without a matrix
void check_options(NeighborOptions const& o, CLI::App const& c) {
  for (OfPatterns const& one : {OfPatterns{"--density", {"rsg"}},
                                {"--seed", {"rsg"}},
                                {"--dimension", {"moore"}},
                                {"--radius", {"moore"}},
                                {"--sizes", {"rsg", "moore"}},
                                {"--columns", {"spmm"}},
                                {"--gather", {"spmm", "spmv"}},
                                {"--collective", {"rsg", "moore"}},
                                {"matrix", {"spmm", "spmv"}}})
    if (c.count(one.option) > 0 && !(o.draws_lengths() && one.option == std::string_view("--seed")) &&
        std::find(one.patterns.begin(), one.patterns.end(), o.pattern) == one.patterns.end())
      throw Error(ErrorCode::usage, fmt::format("{} with --pattern {} is refused (it is of {}). Drop it.",
                                                one.option[0] == '-' ? one.option : "the matrix " + o.matrix,
                                                o.pattern, fmt::join(one.patterns, " and ")));
  if (o.multiplies() && o.matrix.empty())
    throw Error(ErrorCode::usage,
                fmt::format("--pattern {} without a matrix is refused (it is what is multiplied). Name a "
                            "file, a preset or one of {}.",
                            o.pattern, fmt::join(graph_names(), ", ")));
  check_neighbor_gpu_options(o.common, c);
}

/// What nobody has said: sizes, and on GPUs steps and ranks.
/// Errors  usage  more ranks than GPUs, unasked, or fewer
void take_defaults(NeighborOptions& o, CLI::App const& c) {
  bool const on_gpus = o.common.gpus > 0;
  if (on_gpus) take_neighbor_gpu_defaults(o.common, c);
  if (!o.common.sizes.empty()) return;
  std::size_t const least = on_gpus ? 1024 : 4096, most = std::size_t{on_gpus ? 64U : 4U} << 20;
  for (std::size_t bytes = least; bytes <= most; bytes *= 4) o.common.sizes.push_back(bytes);
}

void add_one(CLI::App& bench, char const* name, char const* group, Arguments const& arguments,
             std::function<int()>& work) {
  auto o = std::make_shared<NeighborOptions>();
  o->common.measure.protocol = {2, 10, 5};
  CLI::App* c = bench.add_subcommand(
      name,
      "Neighbourhood allgathers, and products that gather so, by every route, beside the MPI library's own");
  c->group(group);
  add_neighbor_options(*c, o);
  c->callback([o, c, &arguments, &work] {
    work = [o, c, &arguments] {
      check_options(*o, *c);
      take_defaults(*o, *c);
      std::string const& json = o->common.measure.json;
      check_names({{"--json", json}}, {{"the matrix", o->matrix}});
      if (!json.empty() && json != "-") check_whole_file(json);
      o->common.provenance = provenance_of(*c);
      return run_ranks(o->common.ranks, arguments,
                       [&](Transport& transport) { return time_neighbors(*o, transport); });
    };
  });
}

}  // namespace

// Under both spellings; help has the one that MPI has.
void add_bench_neighbor(CLI::App& bench, Arguments const& arguments, std::function<int()>& work) {
  add_one(bench, "neighbor", "Subcommands", arguments, work);
  add_one(bench, "neighbour", "", arguments, work);
}

}  // namespace hostless
