// What a collective costs on any machine, by the number of nodes: no rank is started.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/counted.hpp"
#include "bench/neighbor/neighbors.hpp"
#include "hostless/base/error.hpp"
#include "hostless/model/counts.hpp"
#include "hostless/model/price.hpp"
#include "hostless/model/solve_price.hpp"
#include "lists.hpp"
#include "machine/memory_option.hpp"
#include "numbers.hpp"
#include "predict/predict_commands.hpp"
#include "predict/scaling.hpp"

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;

constexpr int most_radius = 1024, most_dimensions = 4;
constexpr std::int64_t most_cut_items = 1 << 20;

struct CollectivePrediction {
  ScalingOptions scaling;
  std::string pattern;
  double bytes = 8, density = 0.5;
  std::uint64_t seed = 0;
  int dimension = 2, radius = 1, ranks_per_node = 0;
  MemoryKind memory = MemoryKind::host;
};

int ranks_per_node(CollectivePrediction const& o, MachineModel const& machine) {
  return ranks_of_node(machine, o.memory, o.ranks_per_node);
}

// Blocks of so many items, each read by all neighbours.
std::vector<Pattern> patterns_of(CollectivePrediction const& o, int ranks, int items, std::int64_t& reads) {
  std::vector<Pattern> patterns;
  reads = 0;
  for (Rank rank = 0; rank < ranks; ++rank) {
    bench::Neighbors const mine = o.pattern == "rsg" ? bench::random_sparse(ranks, rank, o.density, o.seed)
                                                     : bench::moore(ranks, rank, o.dimension, o.radius);
    Pattern& pattern = patterns.emplace_back();
    pattern.owned = items;
    pattern.first = {0};
    for (std::int32_t item = 0; item < items && !mine.destinations.empty(); ++item) {
      pattern.item.push_back(item);
      pattern.receiver.insert(pattern.receiver.end(), mine.destinations.begin(), mine.destinations.end());
      pattern.first.push_back(std::ssize(pattern.receiver));
    }
    reads += std::ssize(pattern.receiver);
  }
  return patterns;
}

// Routes that cut a block cut it into 64 pieces at most, where these are not too many for seconds.
std::vector<PricedWay> ways_of(CollectivePrediction const& o, MachineModel const& machine,
                               NodeMap const& nodes, double bytes, Scaling& scaling) {
  int const pieces = static_cast<int>(std::clamp(bytes / 8, 1.0, 64.0));
  std::int64_t reads = 0;
  auto const whole = patterns_of(o, nodes.ranks(), 1, reads);
  bool const are_cut = reads * pieces <= most_cut_items;
  if (!are_cut) scaling.notes.insert("routes that cut blocks are not counted: too many pieces");
  std::vector<Pattern> cut;
  if (are_cut) cut = patterns_of(o, nodes.ranks(), pieces, reads);
  std::vector<PricedWay> ways;
  for (Route const route : all_routes) {
    bool const cuts = cuts_items(route);
    if (cuts && !are_cut) continue;
    for (PricedWay& way : price_ways(machine, {count_exchange(route, cuts ? cut : whole, nodes)}, o.memory,
                                     cuts ? bytes / pieces : bytes))
      ways.push_back(std::move(way));
  }
  return ways;
}

// Every route's price, for who measures them all.
Json json_of(int nodes, PricedWay const& way) {
  Json json = {{"nodes", nodes}, {"route", name(way.route)}, {"path", name(way.path)}};
  if (!way.price) return json.update({{"problem", way.problem}}), json;
  PriceTerms const& terms = way.price->terms;
  double const network = terms.messages[static_cast<std::size_t>(MessageSpan::off_node)] + terms.injection;
  json.update({{"seconds", way.price->seconds}, {"network_s", network}});
  return json;
}

ScalingPoint point_of(CollectivePrediction const& o, MachineModel const& machine, int nodes, Scaling& scaling,
                      Json& every_way) {
  int const per_node = ranks_per_node(o, machine);
  ScalingPoint point;
  point.nodes = nodes;
  point.ranks = nodes * per_node;
  if (point.ranks == 1) {
    point.refused = "one rank (it has nobody to send to). Give more nodes or --ranks-per-node.";
    return point;
  }
  double const bytes = o.scaling.weak ? o.bytes : o.bytes * o.scaling.nodes.front() / nodes;
  if (o.pattern == "allreduce") {
    SumPrice const sum = price_sum(machine, nodes, per_node, o.memory, bytes);
    point.parts = {0, sum.on_node, 0, sum.between, 0, 0};
    point.way = "doubling";
    scaling.add_words(sum.sources, sum.notes);
  } else {
    auto const ways = ways_of(o, machine, NodeMap::blocks(point.ranks, per_node), bytes, scaling);
    PricedWay const& way = ways[cheapest(ways)];
    for (PricedWay const& one : ways) {
      every_way.push_back(json_of(nodes, one));
      every_way.back()["chosen"] = &one == &way;
    }
    PriceTerms const& terms = way.price->terms;
    auto const& [on_socket, on_node, off_node] = terms.messages;
    point.parts = {on_socket, on_node, terms.copies, off_node, terms.queue, terms.injection};
    point.way = words_of(way);
    scaling.add_words(way.price->sources, way.price->notes);
  }
  for (double const part : point.parts) point.seconds += part;
  point.least = point.seconds * (1 - messages_off);
  point.most = point.seconds * (1 + messages_off);
  return point;
}

std::string text_of(CollectivePrediction const& o) {
  std::string const bytes = fmt::format("{:g} bytes", o.bytes);
  if (o.pattern == "rsg")
    return fmt::format("neighbourhood allgather of {}, rsg of density {:g}", bytes, o.density);
  if (o.pattern == "moore")
    return fmt::format("neighbourhood allgather of {}, moore of {} and radius {}", bytes,
                       counted(o.dimension, "axis", "axes"), o.radius);
  return fmt::format("all-reduce of {}", bytes);
}

void check(CollectivePrediction const& o, CLI::App const& command) {
  o.scaling.check();
  if (o.pattern == "allreduce" && !o.scaling.weak)
    throw Error(ErrorCode::usage,
                "--scaling strong with --pattern allreduce is refused (every rank adds all bytes). Drop it.");
  for (auto const& [option, pattern] :
       {std::pair("--density", "rsg"), {"--seed", "rsg"}, {"--dimension", "moore"}, {"--radius", "moore"}})
    if (command.count(option) > 0 && o.pattern != pattern)
      throw Error(ErrorCode::usage, fmt::format("{} with --pattern {} is refused (it is of {}). Drop it.",
                                                option, o.pattern, pattern));
}

int predict_collective(CollectivePrediction const& o) {
  Scaling scaling;
  MachineModel const machine = o.scaling.load(scaling.notes);
  o.scaling.check_ranks(ranks_per_node(o, machine));
  scaling.title = fmt::format("{} on {}, {} memory", text_of(o), machine.name, name(o.memory));
  scaling.what = "a call";
  scaling.parts = {"on socket", "on node", "copies", "between", "queue", "injection"};
  Json every_way = Json::array();
  for (int const nodes : o.scaling.nodes)
    scaling.add(point_of(o, machine, nodes, scaling, every_way), o.scaling.weak);
  Json head = {{"version", 1},
               {"machine", machine.name},
               {"pattern", o.pattern},
               {"bytes", o.bytes},
               {"scaling", o.scaling.weak ? "weak" : "strong"},
               {"ranks_per_node", ranks_per_node(o, machine)},
               {"memory", name(o.memory)},
               {"ways", every_way}};
  if (o.pattern == "rsg") head["density"] = o.density, head["seed"] = o.seed;
  if (o.pattern == "moore") head["dimension"] = o.dimension, head["radius"] = o.radius;
  return show_scaling(o.scaling, scaling, std::move(head));
}

}  // namespace

void add_predict_collective(CLI::App& predict, std::function<int()>& work) {
  auto o = std::make_shared<CollectivePrediction>();
  CLI::App* c = predict.add_subcommand(
      "collective",
      "What an all-reduce or a neighbourhood allgather costs on a machine, by the number of nodes");
  c->footer("Messages are counted, and nothing is sent.");
  o->scaling.weak = true;
  o->scaling.add(*c, "strong: blocks get smaller as nodes get more; weak: they stay (default weak)");
  c->add_option(
       "--pattern", o->pattern,
       "allreduce; rsg: allgather along a random sparse graph; moore: to a neighbourhood in a grid of ranks")
      ->required()
      ->check(one_of({"allreduce", "rsg", "moore"}));
  constexpr std::int64_t most_bytes = 1'000'000'000'000'000;
  c->add_option("--bytes", o->bytes, "Of a rank's block, at the first number of nodes")
      ->capture_default_str()
      ->check(whole_number<std::int64_t>(1, most_bytes))
      ->type_name("INT");
  c->add_option("--density", o->density, "Of rsg: probability of each edge, from 0 to 1")
      ->capture_default_str()
      ->check(real_number(true))
      ->check(CLI::Range(0.0, 1.0));
  c->add_option("--seed", o->seed, "Of rsg: another one is another graph")
      ->capture_default_str()
      ->check(whole_number(std::uint64_t{0}, most_seed));
  c->add_option("--dimension", o->dimension, "Of moore: axes of the grid")
      ->capture_default_str()
      ->check(whole_number(1, most_dimensions));
  c->add_option("--radius", o->radius, "Of moore: steps along each axis that a neighbour may be away")
      ->capture_default_str()
      ->check(whole_number(1, most_radius));
  c->add_option("--ranks-per-node", o->ranks_per_node, "0: as many as nodes have cores, or GPUs")
      ->capture_default_str()
      ->check(whole_number(0));
  add_memory(*c, o->memory);
  c->callback([o, c, &work] {
    work = [o, c] {
      check(*o, *c);
      return predict_collective(*o);
    };
  });
}

}  // namespace hostless
