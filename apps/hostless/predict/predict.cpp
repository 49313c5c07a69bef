// What an iteration of a solve costs on any machine, by the number of nodes: no matrix is solved.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/counted.hpp"
#include "commands.hpp"
#include "hostless/base/error.hpp"
#include "hostless/solve/layout_words.hpp"
#include "hostless/solve/method.hpp"
#include "hostless/solve/symmetry.hpp"
#include "lists.hpp"
#include "machine/memory_option.hpp"
#include "numbers.hpp"
#include "predict/predict_commands.hpp"
#include "predict/scaling.hpp"
#include "predict/solved_share.hpp"
#include "standard_output.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;

struct PredictRequest {
  InputOptions input;
  TakenOptions taken;  ///< of the one table
  ScalingOptions scaling;
  std::string file, sums;
  int gpus_per_node = 0, ranks_per_node = 0;
  MemoryKind memory = MemoryKind::gpu;
  PricedMethod method = PricedMethod::cg;
};

/// A line of the table.
struct Point {
  int nodes = 1, ranks = 1;
  SolvedShare share;
  IterationPrice price;
  std::string way = "none";
  std::string refused;  ///< why a solve there cannot be; it has no price
  double efficiency = 0;
};

struct Prediction {
  MachineModel machine;
  MatrixGraph graph;  // of what is no lattice
  std::vector<Point> points;
  Scaling scaling;  // the points that have a price
};

bool is_lattice(PredictRequest const& o) { return o.input.generated() && is_lattice(o.input.problem()); }

Symmetry symmetry_of(PredictRequest const& o) { return symmetry_for(method_from(name(o.method))); }

int ranks_per_node(PredictRequest const& o, MachineModel const& machine) {
  if (o.gpus_per_node > 0) return ranks_of_node(machine, o.memory, o.gpus_per_node, "--gpus-per-node");
  return ranks_of_node(machine, o.memory, o.ranks_per_node);
}

MemoryKind sums_in(PredictRequest const& o) {
  if (o.sums.empty()) return o.memory;
  return o.sums == "host" ? MemoryKind::host : MemoryKind::gpu;
}

SolveSetting setting_of(PredictRequest const& o, int nodes, int per_node) {
  return {nodes, per_node, o.memory, sums_in(o)};
}

// What can be refused without the matrix is refused before it is read.
void check_points(PredictRequest const& o, MachineModel const& machine, int per_node) {
  if (o.scaling.weak && !is_lattice(o))
    throw Error(ErrorCode::usage,
                "--scaling weak of a matrix that does not grow. Generate poisson1d, poisson2d, poisson7, "
                "poisson27 or monodomain.");
  o.scaling.check_ranks(per_node);
  for (int nodes : o.scaling.nodes) {
    o.scaling.growth(nodes);
    price_iteration(machine, o.method, {1, 1, 0, 1}, setting_of(o, nodes, per_node), nullptr);
  }
}

Point point_of(PredictRequest const& o, Prediction const& all, int nodes, int per_node) {
  Point point;
  point.nodes = nodes;
  point.ranks = nodes * per_node;
  NodeMap const map = NodeMap::blocks(point.ranks, per_node);
  auto const lattice =
      is_lattice(o) ? std::optional(grown(o.input.problem(), o.scaling.growth(nodes))) : std::nullopt;
  try {
    point.share = lattice ? share_of_lattice(*lattice, map)
                          : share_of_matrix(all.graph, map, LayoutWords{}.parse(o.input.seed).seed);
  } catch (Error const& e) {
    if (e.code() != ErrorCode::usage) throw;
    point.refused = e.what();  // more ranks than it has rows: fewer nodes have prices
    return point;
  }
  SolveSetting const setting = setting_of(o, nodes, per_node);
  point.refused = why_it_does_not_fit(all.machine, o.method, point.share.work, setting);
  if (!point.refused.empty()) return point;
  if (point.ranks == 1) {
    point.price = price_iteration(all.machine, o.method, point.share.work, setting, nullptr);
    return point;
  }
  constexpr double item_bytes = 8;
  auto const ways = price_ways(all.machine, point.share.counts, o.memory, item_bytes);
  PricedWay const& way = ways[cheapest(ways)];
  point.way = words_of(way);
  point.price = price_iteration(all.machine, o.method, point.share.work, setting, &*way.price);
  return point;
}

// Parts of METIS and boxes have borders of other lengths.
std::string dealt_words(Point const& point) {
  std::string const dealt = name(point.share.dealing);
  if (point.share.dealing == Dealing::boxes)
    return "rows are dealt in " + dealt + "; a solve deals contiguous rows, or by METIS";
  return fmt::format("rows are dealt {}: {}", dealt, counted(point.ranks, "rank"));
}

Prediction predicted(PredictRequest const& o) {
  Prediction all;
  all.machine = o.scaling.load(all.scaling.notes);
  all.scaling.title = fmt::format("{} of {} on {}", name(o.method), o.input.describe(), all.machine.name);
  all.scaling.what = "an iteration";
  all.scaling.parts = {"product", "vectors", "halo", "sums", "launches"};
  int const per_node = ranks_per_node(o, all.machine);
  check_points(o, all.machine, per_node);
  if (!is_lattice(o)) all.graph = graph_of(o.input, symmetry_of(o), symmetry_tolerance(o.taken), o.memory);
  for (int nodes : o.scaling.nodes) {
    all.points.push_back(point_of(o, all, nodes, per_node));
    Point& point = all.points.back();
    if (!point.refused.empty()) continue;
    all.scaling.notes.insert(dealt_words(point));
    IterationPrice const& p = point.price;
    all.scaling.add({point.nodes,
                     point.ranks,
                     p.seconds,
                     p.least,
                     p.most,
                     {p.product, p.vectors, p.halo, p.sums(), p.launches},
                     point.way},
                    o.scaling.weak);
    all.scaling.add_words(p.sources, p.notes);
    point.efficiency = all.scaling.points.back().efficiency;
  }
  if (all.scaling.points.empty()) refuse_all(all.points.back().nodes, all.points.back().refused);
  return all;
}

Json json_of(Point const& point) {
  IterationPrice const& p = point.price;
  Json json = {{"nodes", point.nodes},
               {"ranks", point.ranks},
               {"rows", point.share.rows},
               {"entries", point.share.entries},
               {"rows_of_a_rank", point.share.work.rows},
               {"dealt", name(point.share.dealing)}};
  if (!point.refused.empty()) {
    json["refused"] = point.refused;
    return json;
  }
  json.update(Json{{"seconds", p.seconds},
                   {"least_s", p.least},
                   {"most_s", p.most},
                   {"terms",
                    {{"product_s", p.product},
                     {"vectors_s", p.vectors},
                     {"halo_s", p.halo},
                     {"sums_on_node_s", p.sums_on_node},
                     {"sums_between_s", p.sums_between},
                     {"sum_copies_s", p.sum_copies},
                     {"launches_s", p.launches}}},
                   {"bytes_of_a_rank", p.bytes},
                   {"exchange_s", p.exchange},
                   {"exchange", point.way},
                   {"share_of_sums", p.sums() / p.seconds},
                   {"efficiency", point.efficiency}});
  return json;
}

void print_points(PredictRequest const& o, Prediction const& all) {
  print("{}: {} on {}, {} scaling; us of an iteration, and its parts\n", all.machine.name, name(o.method),
        o.input.describe(), o.scaling.weak ? "weak" : "strong");
  print("  {:>5} {:>6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>9} {:>8} {:>6}  {}\n", "nodes",
        "ranks", "total", "least", "most", "product", "vectors", "halo", "sums", "launches", "% sums",
        "% eff.", "exchange");
  for (Point const& point : all.points) {
    if (!point.refused.empty()) {
      print("  {:>5} {:>6} refused: {}\n", point.nodes, point.ranks, point.refused);
      continue;
    }
    IterationPrice const& p = point.price;
    print(
        "  {:>5} {:>6} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f} {:>8.2f} {:>8.2f} {:>9.2f} {:>8.1f} "
        "{:>6.1f}  {}\n",
        point.nodes, point.ranks, 1e6 * p.seconds, 1e6 * p.least, 1e6 * p.most, 1e6 * p.product,
        1e6 * p.vectors, 1e6 * p.halo, 1e6 * p.sums(), 1e6 * p.launches, 100 * p.sums() / p.seconds,
        100 * point.efficiency, point.way);
  }
  print_words(all.scaling);
}

int print_prediction(PredictRequest const& o) {
  Prediction const all = predicted(o);
  Json json = {{"version", 1},
               {"machine", all.machine.name},
               {"matrix", o.input.describe()},
               {"method", name(o.method)},
               {"scaling", o.scaling.weak ? "weak" : "strong"},
               {"memory", name(o.memory)},
               {"ranks_per_node", ranks_per_node(o, all.machine)},
               {"sums", name(sums_in(o))},
               {"messages_of", o.scaling.messages_of.empty() ? Json() : Json(o.scaling.messages_of)}};
  if (o.memory == MemoryKind::gpu) json["gpus_per_node"] = json["ranks_per_node"];  // a rank each
  for (Point const& point : all.points) json["points"].push_back(json_of(point));
  json["sources"] = all.scaling.sources;
  json["notes"] = all.scaling.notes;
  if (!o.scaling.json.empty()) write_text(o.scaling.json, json_text(json));
  if (o.scaling.json != "-") print_points(o, all);
  if (!o.scaling.output.empty()) draw_scaling(o.scaling, all.scaling);
  return 0;
}

// Who counts entries looks at none, and deals a lattice by its sides.
void check_request(PredictRequest& o, CLI::App const& command) {
  o.input.file = o.file;
  o.input.check_given();
  bool const compares = symmetry_of(o) == Symmetry::required;
  check_symmetry_tolerance(o.taken, o.input.generated(),
                           compares ? "" : fmt::format("--method {}", name(o.method)));
  o.scaling.check(o.file);
  if (o.gpus_per_node > 0 && o.ranks_per_node > 0)
    throw Error(ErrorCode::usage,
                "--gpus-per-node and --ranks-per-node are refused (a rank each is meant). Drop one of them.");
  if (o.memory == MemoryKind::host && o.sums == "gpu")
    throw Error(ErrorCode::usage,
                "--sums gpu with --memory host is refused (no GPU has anything to add). Drop it.");
  if (o.gpus_per_node > 0 && o.memory == MemoryKind::host)
    throw Error(ErrorCode::usage,
                "--gpus-per-node with --memory host is refused (no GPU computes). Use --ranks-per-node.");
  if (!o.input.generated()) return;
  for (char const* const option : {"--contrast", "--time-step", "--seed"})
    if (command.count(option) > 0 && (is_lattice(o) || std::string_view(option) != "--seed"))
      throw Error(
          ErrorCode::usage,
          fmt::format("{} of {} is refused (entries are counted, and their values change no price). Drop it.",
                      option, o.input.problem().kind));
}

// Its options would be ignored where a subcommand has its own.
void refuse_options_before(CLI::App const& inner, CLI::App const& command) {
  for (CLI::Option const* option : command.get_options())
    if (option->count() > 0 && option->get_name() != "--help")
      throw Error(ErrorCode::usage,
                  fmt::format("{} before {} is refused (it is of solves). Give it behind the word.",
                              option->get_name(), inner.get_name()));
}

}  // namespace

void add_predict(CLI::App& app, std::function<int()>& work) {
  auto o = std::make_shared<PredictRequest>();
  CLI::App* c = app.add_subcommand("predict", "What an iteration costs on a machine, by the number of nodes");
  c->footer(
      "Lattices (poisson1d, poisson2d, poisson7, poisson27, monodomain) are counted, and nothing is stored.");
  c->add_option("file", o->file, "Matrix Market (plain or gz), PETSc binary or scipy's .npz");
  o->input.add_problem(*c);
  add_symmetry_tolerance(*c, o->taken);
  o->scaling.add(
      *c, "strong: one matrix; weak: one that grows from the first number of nodes on (default strong)");
  c->add_option("--gpus-per-node", o->gpus_per_node, "A rank each; 0: all that a node has")
      ->capture_default_str()
      ->check(whole_number(0));
  c->add_option("--ranks-per-node", o->ranks_per_node, "0: as many as nodes have GPUs, or cores")
      ->capture_default_str()
      ->check(whole_number(0));
  add_memory(*c, o->memory)->description("Where matrix and vectors lie: gpu or host (default gpu)");
  c->add_option_function<std::string>(
       "--method",
       [o](std::string const& text) {
         for (PricedMethod const one : all_priced_methods)
           if (text == name(one)) o->method = one;
       },
       "cg, pipelined-cg or bicgstab (default cg)")
      ->check(one_of({"cg", "pipelined-cg", "bicgstab"}));
  c->add_option("--sums", o->sums, "Where all-reduces take their numbers: gpu or host (default: as --memory)")
      ->check(one_of({"gpu", "host"}));
  add_predict_stencil(*c, work);
  add_predict_collective(*c, work);
  c->callback([o, c, &work] {
    if (auto const inner = c->get_subcommands(); !inner.empty()) {
      work = [c, named = inner[0], of_named = std::move(work)] {
        refuse_options_before(*named, *c);
        return of_named();
      };
      return;
    }
    work = [o, c] {
      check_request(*o, *c);
      return print_prediction(*o);
    };
  });
}

}  // namespace hostless
