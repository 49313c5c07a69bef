// What an iteration of a solve costs on any machine, by the number of nodes: no matrix is solved.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/whole_file.hpp"
#include "commands.hpp"
#include "hostless/base/error.hpp"
#include "hostless/solve/layout_words.hpp"
#include "lists.hpp"
#include "machine/figure_fields.hpp"
#include "numbers.hpp"
#include "pictures/python_command.hpp"
#include "predict/solved_share.hpp"
#include "standard_output.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;

constexpr int most_nodes = 1 << 13, most_ranks = 1 << 13;

struct PredictRequest {
  InputOptions input;
  std::string file, machine, messages_of, json, output, sums;
  std::vector<int> nodes;
  int gpus_per_node = 0;
  PricedMethod method = PricedMethod::cg;
  bool weak = false;
};

/// A line of the table.
struct Point {
  int nodes = 1, ranks = 1;
  SolvedShare share;
  IterationPrice price;
  std::string way = "none";
  double efficiency = 1.0;
};

struct Prediction {
  MachineModel machine;
  MatrixGraph graph;  // of what is no lattice
  std::vector<Point> points;
  std::set<std::string> sources, notes;
};

// 1..1024: doubled from the first to the last; or numbers between commas.
std::vector<int> nodes_in(std::string const& text) {
  auto const dots = text.find("..");
  if (dots == std::string::npos) return numbers_in("--nodes", text, 1, most_nodes);
  auto const ends = numbers_in("--nodes", text.substr(0, dots) + "," + text.substr(dots + 2), 1, most_nodes);
  if (ends.size() != 2 || ends[0] > ends[1])
    throw CLI::ValidationError("--nodes",
                               fmt::format("'{}' (FROM..TO, doubled each time, or N,N,...)", text));
  std::vector<int> nodes;
  for (int n = ends[0]; n <= ends[1]; n *= 2) nodes.push_back(n);
  return nodes;
}

bool is_lattice(PredictRequest const& o) { return o.input.generated() && is_lattice(o.input.problem()); }

int ranks_per_node(PredictRequest const& o, MachineModel const& machine) {
  int const there = machine.node.gpus();
  if (there == 0)
    throw Error(ErrorCode::bad_input, fmt::format("{}: no GPUs (a rank each is meant).", machine.name));
  if (o.gpus_per_node > there)
    throw Error(ErrorCode::usage, fmt::format("--gpus-per-node {} where a node of {} has {}.",
                                              o.gpus_per_node, machine.name, there));
  return o.gpus_per_node > 0 ? o.gpus_per_node : there;
}

// Costs whose sources are words: keys are those of their own machine's file.
CostTables with_sources(MachineModel const& machine) {
  CostTables costs = machine.costs;
  auto const in_words = [&](auto& all) {
    for (auto& one : all)
      if (auto const words = machine.sources.find(one.source); words != machine.sources.end())
        one.source = words->second;
  };
  in_words(costs.messages);
  in_words(costs.injection);
  in_words(costs.copies);
  return costs;
}

MachineModel machine_of(PredictRequest const& o, std::set<std::string>& notes) {
  MachineModel machine = load_machine(o.machine);
  if (!o.messages_of.empty()) {
    if (!machine.costs.messages.empty())
      throw Error(ErrorCode::usage,
                  fmt::format("--messages-of where {} has data of messages. Drop it.", machine.name));
    MachineModel other = load_machine(o.messages_of);
    if (other.costs.messages.empty())
      throw Error(
          ErrorCode::usage,
          fmt::format("--messages-of {}: it has no data of messages. Name another machine.", other.name));
    machine.costs = with_sources(other);
    notes.insert(fmt::format("messages, injection and copies are those of {}", other.name));
  }
  std::vector<std::string> filled;
  machine = with_all_spans(std::move(machine), filled);
  notes.insert(filled.begin(), filled.end());
  return machine;
}

SolveSetting setting_of(PredictRequest const& o, int nodes, int per_node) {
  return {nodes, per_node, MemoryKind::gpu, o.sums == "host" ? MemoryKind::host : MemoryKind::gpu};
}

// What can be refused without the matrix is refused before it is read.
void check_points(PredictRequest const& o, MachineModel const& machine, int per_node) {
  if (o.weak && !is_lattice(o))
    throw Error(ErrorCode::usage,
                "--scaling weak of a matrix that does not grow. Generate poisson1d, poisson2d, poisson7 or "
                "poisson27.");
  for (int nodes : o.nodes) {
    if (nodes * per_node > most_ranks)
      throw Error(ErrorCode::usage,
                  fmt::format("--nodes {}: {} ranks (at most {})", nodes, nodes * per_node, most_ranks));
    if (o.weak && nodes % o.nodes.front() != 0)
      throw Error(ErrorCode::usage,
                  fmt::format("--scaling weak: {} nodes are no multiple of {}, the first ones.", nodes,
                              o.nodes.front()));
    price_iteration(machine, o.method, {1, 1, 0}, setting_of(o, nodes, per_node), nullptr);
  }
}

Point point_of(PredictRequest const& o, Prediction const& all, int nodes, int per_node) {
  Point point;
  point.nodes = nodes;
  point.ranks = nodes * per_node;
  NodeMap const map = NodeMap::blocks(point.ranks, per_node);
  bool const lattice = is_lattice(o);
  if (!lattice)
    point.share = share_of_matrix(all.graph, map, LayoutWords{}.parse(o.input.seed).seed);
  else
    point.share =
        share_of_lattice(o.weak ? grown(o.input.problem(), nodes / o.nodes.front()) : o.input.problem(), map);
  SolveSetting const setting = setting_of(o, nodes, per_node);
  if (point.ranks == 1) {
    point.price = price_iteration(all.machine, o.method, point.share.work, setting, nullptr);
    return point;
  }
  constexpr double item_bytes = 8;
  auto const ways = price_ways(all.machine, point.share.counts, MemoryKind::gpu, item_bytes);
  PricedWay const& way = ways[cheapest(ways)];
  point.way = fmt::format("{} {}", name(way.route), name(way.path));
  point.price = price_iteration(all.machine, o.method, point.share.work, setting, &*way.price);
  return point;
}

Prediction predicted(PredictRequest const& o) {
  Prediction all;
  all.machine = machine_of(o, all.notes);
  int const per_node = ranks_per_node(o, all.machine);
  check_points(o, all.machine, per_node);
  if (auto const most = all.machine.nodes; most && *std::max_element(o.nodes.begin(), o.nodes.end()) > *most)
    all.notes.insert(fmt::format("{} has {} nodes", all.machine.name, *most));
  if (!is_lattice(o)) all.graph = graph_of(o.input);
  for (int nodes : o.nodes) {
    Point& point = all.points.emplace_back();
    point = point_of(o, all, nodes, per_node);
    Point const& first = all.points.front();
    double const faster = first.price.seconds / point.price.seconds;
    point.efficiency = o.weak ? faster : faster * first.nodes / point.nodes;
    all.sources.insert(point.price.sources.begin(), point.price.sources.end());
    all.notes.insert(point.price.notes.begin(), point.price.notes.end());
  }
  return all;
}

Json json_of(Point const& point) {
  IterationPrice const& p = point.price;
  return {{"nodes", point.nodes},
          {"ranks", point.ranks},
          {"rows", point.share.rows},
          {"entries", point.share.entries},
          {"rows_of_a_rank", point.share.work.rows},
          {"seconds", p.seconds},
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
          {"exchange_s", p.exchange},
          {"exchange", point.way},
          {"share_of_sums", p.sums() / p.seconds},
          {"efficiency", point.efficiency}};
}

Figure figure_of(PredictRequest const& o, Prediction const& all) {
  FigureField field{o.weak ? "weak scaling" : "strong scaling", "nodes", "seconds of an iteration", {}};
  constexpr std::array labels = {"iteration", "least", "most", "product",
                                 "vectors",   "halo",  "sums", "launches"};
  for (std::size_t k = 0; k < labels.size(); ++k) {
    FigureLine& line = field.lines.emplace_back();
    line.label = labels[k];
    line.dashed = k == 1 || k == 2;
    for (Point const& point : all.points) {
      IterationPrice const& p = point.price;
      double const y =
          std::array{p.seconds, p.least, p.most, p.product, p.vectors, p.halo, p.sums(), p.launches}[k];
      if (y <= 0) continue;  // axes are logarithmic
      line.x.push_back(point.nodes);
      line.y.push_back(y);
      line.marked.push_back(false);
    }
    if (line.x.empty()) field.lines.pop_back();
  }
  return {"predict",
          fmt::format("{} of {} on {}", name(o.method), o.input.describe(), all.machine.name),
          {field}};
}

void print_points(PredictRequest const& o, Prediction const& all) {
  print("{}: {} on {}, {} scaling; us of an iteration, and its parts\n", all.machine.name, name(o.method),
        o.input.describe(), o.weak ? "weak" : "strong");
  print("  {:>5} {:>6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>9} {:>8} {:>6}  {}\n", "nodes",
        "ranks", "total", "least", "most", "product", "vectors", "halo", "sums", "launches", "% sums",
        "% eff.", "exchange");
  for (Point const& point : all.points) {
    IterationPrice const& p = point.price;
    print(
        "  {:>5} {:>6} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f} {:>8.2f} {:>8.2f} {:>9.2f} {:>8.1f} "
        "{:>6.1f}  {}\n",
        point.nodes, point.ranks, 1e6 * p.seconds, 1e6 * p.least, 1e6 * p.most, 1e6 * p.product,
        1e6 * p.vectors, 1e6 * p.halo, 1e6 * p.sums(), 1e6 * p.launches, 100 * p.sums() / p.seconds,
        100 * point.efficiency, point.way);
  }
  for (std::string const& source : all.sources) print("  source: {}\n", source);
  for (std::string const& note : all.notes) print("  note: {}\n", note);
}

int print_prediction(PredictRequest const& o) {
  Prediction const all = predicted(o);
  Json json = {{"version", 1},
               {"machine", all.machine.name},
               {"matrix", o.input.describe()},
               {"method", name(o.method)},
               {"scaling", o.weak ? "weak" : "strong"},
               {"gpus_per_node", ranks_per_node(o, all.machine)},
               {"sums", o.sums == "host" ? "host" : "gpu"},
               {"messages_of", o.messages_of.empty() ? Json() : Json(o.messages_of)}};
  for (Point const& point : all.points) json["points"].push_back(json_of(point));
  json["sources"] = all.sources;
  json["notes"] = all.notes;
  if (!o.output.empty()) draw_picture(json_text(json_of(figure_of(o, all))), o.output);
  if (!o.json.empty()) write_text(o.json, json_text(json));
  if (o.json != "-") print_points(o, all);
  return 0;
}

void check_request(PredictRequest& o) {
  o.input.file = o.file;
  o.input.check_given();
  if (!o.output.empty() && !o.output.ends_with(".svg"))
    throw Error(ErrorCode::usage,
                fmt::format("--output {} (pictures are SVG). Name a file that ends with .svg.", o.output));
  for (std::string const& file : {o.output, o.json})
    if (!file.empty() && file != "-") check_whole_file(file);
  check_names({{"--output", o.output}, {"--json", o.json}},
              {{"the matrix", o.file}, {"--machine", o.machine}, {"--messages-of", o.messages_of}});
}

}  // namespace

void add_predict(CLI::App& app, std::function<int()>& work) {
  auto o = std::make_shared<PredictRequest>();
  CLI::App* c = app.add_subcommand("predict", "What an iteration costs on a machine, by the number of nodes");
  c->footer("Lattices (poisson1d, poisson2d, poisson7, poisson27) are counted, and nothing is stored.");
  c->add_option("file", o->file, "Matrix Market (plain or gz), PETSc binary or scipy's .npz");
  o->input.add_problem(*c);
  c->add_option("--machine", o->machine, "A name of `machine list`, or a file")->required();
  c->add_option("--messages-of", o->messages_of,
                "Another machine, whose messages, injection and copies are taken where this one has no data "
                "of messages");
  c->add_option_function<std::string>(
       "--nodes", [o](std::string const& text) { o->nodes = nodes_in(text); },
       "1..1024: doubled from the first on, up to the last; or N,N,...; efficiencies are against the first")
      ->required();
  c->add_option("--gpus-per-node", o->gpus_per_node, "A rank each; 0: all that a node has")
      ->capture_default_str()
      ->check(whole_number(0));
  c->add_option_function<std::string>(
       "--method",
       [o](std::string const& text) {
         o->method = text == "cg" ? PricedMethod::cg : PricedMethod::pipelined_cg;
       },
       "cg or pipelined-cg (default cg)")
      ->check(one_of({"cg", "pipelined-cg"}));
  c->add_option_function<std::string>(
       "--scaling", [o](std::string const& text) { o->weak = text == "weak"; },
       "strong: one matrix; weak: one that grows from the first number of nodes on (default strong)")
      ->check(one_of({"strong", "weak"}));
  c->add_option("--sums", o->sums, "Where all-reduces take their numbers: gpu or host (default gpu)")
      ->check(one_of({"gpu", "host"}));
  c->add_option("--output", o->output, "The picture, .svg (needs the Python package with matplotlib)");
  c->add_option("--json", o->json, "Write it as JSON; - for standard output");
  c->callback([o, &work] {
    work = [o] {
      check_request(*o);
      return print_prediction(*o);
    };
  });
}

}  // namespace hostless
