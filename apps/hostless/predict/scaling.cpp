#include "predict/scaling.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/counted.hpp"
#include "base/whole_file.hpp"
#include "file_names.hpp"
#include "hostless/base/error.hpp"
#include "hostless/model/solve_price.hpp"
#include "lists.hpp"
#include "machine/figure_fields.hpp"
#include "pictures/python_command.hpp"
#include "standard_output.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;

constexpr int most_nodes = most_predicted_ranks;

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

bool has_price(ScalingPoint const& point) { return point.refused.empty(); }

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

}  // namespace

void ScalingOptions::add(CLI::App& command, char const* scaling) {
  command.add_option("--machine", machine, "A name of `machine list`, or a file");
  command.add_option(
      "--messages-of", messages_of,
      "Another machine, whose messages, injection and copies are taken where this one has no data "
      "of messages");
  command.add_option_function<std::string>(
      "--nodes", [this](std::string const& text) { nodes = nodes_in(text); },
      "1..1024: doubled from the first on, up to the last; or N,N,...; efficiencies are against the first");
  command
      .add_option_function<std::string>(
          "--scaling", [this](std::string const& text) { weak = text == "weak"; }, scaling)
      ->check(one_of({"strong", "weak"}));
  command.add_option("--output", output, "The picture, .svg (needs the Python package with matplotlib)");
  command.add_option("--json", json, "Write it as JSON; - for standard output");
}

void ScalingOptions::check(std::string const& input) const {
  if (machine.empty() || nodes.empty())
    throw Error(ErrorCode::usage,
                fmt::format("{} is missing (what is predicted is of a machine and of numbers of "
                            "nodes). Give both.",
                            machine.empty() ? "--machine" : "--nodes"));
  if (!output.empty() && !output.ends_with(".svg"))
    throw Error(ErrorCode::usage,
                fmt::format("--output {} (pictures are SVG). Name a file that ends with .svg.", output));
  for (std::string const& file : {output, json})
    if (!file.empty() && file != "-") check_whole_file(file);
  check_names({{"--output", output}, {"--json", json}},
              {{"the matrix", input}, {"--machine", machine}, {"--messages-of", messages_of}});
}

MachineModel ScalingOptions::load(std::set<std::string>& notes) const {
  MachineModel made = load_machine(machine);
  if (!messages_of.empty()) {
    if (!made.costs.messages.empty())
      throw Error(ErrorCode::usage,
                  fmt::format("--messages-of where {} has data of messages. Drop it.", made.name));
    MachineModel const other = load_machine(messages_of);
    if (other.costs.messages.empty())
      throw Error(
          ErrorCode::usage,
          fmt::format("--messages-of {}: it has no data of messages. Name another machine.", other.name));
    made.costs = with_sources(other);
    notes.insert(fmt::format("messages, injection and copies are those of {}", other.name));
  }
  std::vector<std::string> filled;
  made = with_all_spans(std::move(made), filled);
  notes.insert(filled.begin(), filled.end());
  if (made.nodes && *std::max_element(nodes.begin(), nodes.end()) > *made.nodes)
    notes.insert(fmt::format("{} has {}", made.name, counted(*made.nodes, "node")));
  return made;
}

void ScalingOptions::check_ranks(int ranks_per_node) const {
  for (int const n : nodes)
    if (n * std::int64_t{ranks_per_node} > most_predicted_ranks)
      throw Error(ErrorCode::usage,
                  fmt::format("--nodes {}: {} (at most {}). Name at most {} of {}.", n,
                              counted(n * std::int64_t{ranks_per_node}, "rank"), most_predicted_ranks,
                              counted(most_predicted_ranks / ranks_per_node, "node"),
                              counted(ranks_per_node, "rank")));
}

int ScalingOptions::growth(int at_nodes) const {
  if (!weak) return 1;
  if (at_nodes % nodes.front() != 0)
    throw Error(ErrorCode::usage, fmt::format("--scaling weak: {} are no multiple of {}, the first ones.",
                                              counted(at_nodes, "node"), nodes.front()));
  return at_nodes / nodes.front();
}

int ranks_of_node(MachineModel const& machine, MemoryKind memory, int asked, char const* option) {
  int const there = memory == MemoryKind::gpu ? machine.node.gpus() : machine.node.cores();
  if (there == 0 && (asked == 0 || memory == MemoryKind::gpu))
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: no GPUs (a rank each is meant). Use --memory host.", machine.name));
  if (there > 0 && asked > there)
    throw Error(ErrorCode::usage, fmt::format("{} {} where a node of {} has {} (a rank each). Give fewer.",
                                              option, asked, machine.name, there));
  return asked > 0 ? asked : there;
}

void Scaling::add(ScalingPoint point, bool weak) {
  if (point.refused.empty()) {
    auto const priced = std::find_if(points.begin(), points.end(), has_price);
    ScalingPoint const& first = priced == points.end() ? point : *priced;
    double const faster = first.seconds / point.seconds;
    point.efficiency = weak ? faster : faster * first.nodes / point.nodes;
  }
  points.push_back(std::move(point));
}

void refuse_all(int nodes, std::string const& why) {
  throw Error(ErrorCode::usage,
              fmt::format("--nodes {}: {}{}", nodes, why, why.ends_with('.') ? "" : ". Use more nodes."));
}

void Scaling::add_words(std::vector<std::string> const& more_sources,
                        std::vector<std::string> const& more_notes) {
  sources.insert(more_sources.begin(), more_sources.end());
  notes.insert(more_notes.begin(), more_notes.end());
}

std::string words_of(PricedWay const& way) { return fmt::format("{} {}", name(way.route), name(way.path)); }

Json json_of(Scaling const& scaling) {
  Json json = {{"of", scaling.what}, {"points", Json::array()}};
  for (ScalingPoint const& point : scaling.points) {
    if (!has_price(point)) {
      json["points"].push_back({{"nodes", point.nodes}, {"ranks", point.ranks}, {"refused", point.refused}});
      continue;
    }
    Json terms = Json::object();
    for (std::size_t k = 0; k < scaling.parts.size(); ++k) {
      std::string key = scaling.parts[k];
      std::replace(key.begin(), key.end(), ' ', '_');
      terms[key + "_s"] = point.parts[k];
    }
    json["points"].push_back({{"nodes", point.nodes},
                              {"ranks", point.ranks},
                              {"seconds", point.seconds},
                              {"least_s", point.least},
                              {"most_s", point.most},
                              {"terms", terms},
                              {"exchange", point.way},
                              {"efficiency", point.efficiency}});
  }
  json["sources"] = scaling.sources;
  json["notes"] = scaling.notes;
  return json;
}

void print_scaling(Scaling const& scaling, bool weak) {
  print("{}, {} scaling; us of {}, and its parts\n", scaling.title, weak ? "weak" : "strong", scaling.what);
  print("  {:>5} {:>6} {:>10} {:>10} {:>10}", "nodes", "ranks", "total", "least", "most");
  for (char const* part : scaling.parts) print(" {:>10}", part);
  print(" {:>6}  exchange\n", "% eff.");
  for (ScalingPoint const& point : scaling.points) {
    if (!has_price(point)) {
      print("  {:>5} {:>6} refused: {}\n", point.nodes, point.ranks, point.refused);
      continue;
    }
    print("  {:>5} {:>6} {:>10.2f} {:>10.2f} {:>10.2f}", point.nodes, point.ranks, 1e6 * point.seconds,
          1e6 * point.least, 1e6 * point.most);
    for (double const part : point.parts) print(" {:>10.2f}", 1e6 * part);
    print(" {:>6.1f}  {}\n", 100 * point.efficiency, point.way);
  }
  print_words(scaling);
}

void print_words(Scaling const& scaling) {
  for (std::string const& source : scaling.sources) print("  source: {}\n", source);
  for (std::string const& note : scaling.notes) print("  note: {}\n", note);
}

void draw_scaling(ScalingOptions const& options, Scaling const& scaling) {
  FigureField field{
      options.weak ? "weak scaling" : "strong scaling", "nodes", "seconds of " + scaling.what, {}};
  auto const add = [&](std::string label, bool dashed, auto const& value) {
    FigureLine line;
    line.label = std::move(label);
    line.dashed = dashed;
    for (ScalingPoint const& point : scaling.points) {
      if (!has_price(point) || value(point) <= 0) continue;  // axes are logarithmic
      line.x.push_back(point.nodes);
      line.y.push_back(value(point));
      line.marked.push_back(false);
    }
    if (!line.x.empty()) field.lines.push_back(std::move(line));
  };
  std::string const whole = scaling.what.substr(scaling.what.find(' ') + 1);  // without its article
  add(whole, false, [](ScalingPoint const& point) { return point.seconds; });
  add("least", true, [](ScalingPoint const& point) { return point.least; });
  add("most", true, [](ScalingPoint const& point) { return point.most; });
  for (std::size_t k = 0; k < scaling.parts.size(); ++k)
    add(scaling.parts[k], false, [k](ScalingPoint const& point) { return point.parts[k]; });
  draw_picture(json_text(json_of(Figure{"predict", scaling.title, {field}})), options.output);
}

int show_scaling(ScalingOptions const& options, Scaling const& scaling, Json head) {
  if (std::none_of(scaling.points.begin(), scaling.points.end(), has_price))
    refuse_all(scaling.points.back().nodes, scaling.points.back().refused);
  head.update(json_of(scaling));
  if (!options.json.empty()) write_text(options.json, json_text(head));
  if (options.json != "-") print_scaling(scaling, options.weak);
  if (!options.output.empty()) draw_scaling(options, scaling);  // which needs what may not be here
  return 0;
}

}  // namespace hostless
