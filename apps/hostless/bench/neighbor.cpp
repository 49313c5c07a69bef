// `hostless bench neighbor`: neighbourhood allgathers by every route, beside the MPI library's own.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "bench/neighbors.hpp"
#include "file_names.hpp"
#include "hostless/transport/mpi.hpp"
#include "lists.hpp"
#include "messages.hpp"
#include "numbers.hpp"
#include "options_of.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

constexpr std::size_t longest_block = std::size_t{1} << 28;
constexpr int most_radius = 1024, most_dimensions = 4;
constexpr char const* library_way = "library";

struct NeighborOptions {
  MessageOptions common;
  std::string pattern = "rsg";
  double density = 0.5;
  std::uint64_t seed = 0;
  int dimension = 2, radius = 1, ranks_per_node = 0;
  std::vector<std::string> ways;
};

std::vector<std::string> way_names() {
  std::vector<std::string> names{library_way, "auto"};
  for (Route const route : all_routes) names.emplace_back(name(route));
  return names;
}

bench::NeighborAllgather what_of(NeighborOptions const& o, Transport& transport) {
  bench::NeighborAllgather what;
  int const ranks = transport.group().size(), rank = transport.group().rank();
  if (ranks == 1)
    throw Error(ErrorCode::usage, "one rank (it has nobody to send to). Use --ranks 2, or mpirun.");
  what.mine = o.pattern == "rsg" ? bench::random_sparse(ranks, rank, o.density, o.seed)
                                 : bench::moore(ranks, rank, o.dimension, o.radius);
  bool const is_mpi = transport.capabilities().transport == "mpi";
  if (is_mpi) what.vendor = mpi_vendor_of_this_process();
  what.ranks_per_node = o.ranks_per_node;
  what.bytes = o.common.sizes;
  for (std::string const& word : o.ways.empty() ? way_names() : o.ways) {
    if (word == library_way && !is_mpi && o.ways.empty()) continue;
    bench::NeighborWay way{word == library_way, std::nullopt, word};
    if (word != library_way && word != "auto") way.route = route_from(word.c_str());
    what.ways.push_back(way);
  }
  return what;
}

/// Few repeats have no bound.
Json json_of(bench::MedianBound const& bound) {
  bool const is_bound = std::isfinite(bound.high);
  return {{"median", bound.median},
          {"low", is_bound ? Json(bound.low) : Json()},
          {"high", is_bound ? Json(bound.high) : Json()}};
}

/// How many calls repay what is made once, over the library's; nothing where none do, or there is no library.
Json repaid_after(bench::NeighborTiming const& one, bench::NeighborTiming const* library_of_size) {
  if (library_of_size == nullptr || one.call.median() >= library_of_size->call.median()) return nullptr;
  double const more = one.set_up_s - library_of_size->set_up_s;
  return more <= 0 ? 0 : std::ceil(more / (library_of_size->call.median() - one.call.median()));
}

int time_neighbors(NeighborOptions const& o, Transport& transport) {
  Group& group = transport.group();
  auto const what = what_of(o, transport);
  std::int64_t const edges = group.sum(static_cast<std::int64_t>(what.mine.destinations.size()));
  Table const table(o.common, transport);
  Json report = bench_report("neighbor", o.common.provenance, transport);
  report["pattern"] = o.pattern;
  if (o.pattern == "rsg") {
    report["density"] = o.density;
    report["seed"] = o.seed;
  } else {
    report["dimension"] = o.dimension;
    report["radius"] = o.radius;
  }
  report["edges"] = edges;
  report["steps"] = o.common.measure.protocol.steps;
  report["neighbor"] = Json::array();
  table.line(fmt::format("{} ranks, {}, pattern {} with {} edges: allgather of a block to all neighbours",
                         group.size(), report["transport"].get<std::string>(), o.pattern, edges));
  table.line(fmt::format("{:>10} {:10} {:10} {:>10} {:>10} {:>10} {:>9} {:>10} {:>7} {:>14}", "bytes", "way",
                         "route", "best us", "median us", "worst us", "library/", "set-up us", "repaid",
                         "between nodes"));
  auto const timings = bench::neighbor_allgather(transport, what, o.common.measure.protocol);
  for (bench::NeighborTiming const& one : timings) {
    bench::NeighborTiming const* held = nullptr;
    for (auto const& other : timings)
      if (other.bytes == one.bytes && what.ways[other.way].by_library) held = &other;
    bench::NeighborWay const& way = what.ways[one.way];
    char const* const route = way.by_library ? "" : name(one.route);
    std::int64_t between = 0;
    for (std::int64_t const bytes : one.bytes_out) between += bytes;
    Json row = {{"bytes", one.bytes}, {"way", way.name}, {"route", way.by_library ? Json() : Json(route)}};
    add_times(row, one.call);
    row["set_up_us"] = us * one.set_up_s;
    row["repaid_after"] = way.by_library ? Json() : repaid_after(one, held);
    if (one.library_over) row["library_over_it"] = json_of(*one.library_over);
    row["calls"] = one.calls;
    row["bytes_between"] = between;
    row["messages_between"] = one.messages;
    row["bytes_out"] = one.bytes_out;
    row["bytes_in"] = one.bytes_in;
    std::string const ratio = one.library_over ? fmt::format("{:.2f}", one.library_over->median) : "";
    std::string const repaid =
        row["repaid_after"].is_null() ? "" : fmt::format("{:.0f}", row["repaid_after"].get<double>());
    table.line(fmt::format("{:>10} {:10} {:10} {} {:>9} {:10.1f} {:>7} {:>14}", one.bytes, way.name, route,
                           times_of(one.call), ratio, us * one.set_up_s, repaid, between));
    report["neighbor"].push_back(row);
  }
  write_report(o.common, transport, report);
  return 0;
}

void add_neighbor_options(CLI::App& c, std::shared_ptr<NeighborOptions> const& o) {
  o->common.ranks.add(c, "the neighbourhood");
  c.add_option("--pattern", o->pattern,
               "Who sends to whom: rsg, a random sparse graph, or moore, a neighbourhood in a grid of ranks")
      ->capture_default_str()
      ->check(one_of({"rsg", "moore"}));
  c.add_option("--density", o->density, "Of rsg: probability of each edge, from 0 to 1")
      ->capture_default_str()
      ->check(real_number(true))
      ->check(CLI::Range(0.0, 1.0));
  c.add_option("--seed", o->seed, "Of rsg: another one is another graph")
      ->capture_default_str()
      ->check(whole_number(std::uint64_t{0}, most_seed));
  c.add_option("--dimension", o->dimension, "Of moore: axes of the grid")
      ->capture_default_str()
      ->check(whole_number(1, most_dimensions));
  c.add_option("--radius", o->radius, "Of moore: steps along each axis that a neighbour may be away")
      ->capture_default_str()
      ->check(whole_number(1, most_radius));
  c.add_option("--ranks-per-node", o->ranks_per_node,
               "Ranks 0 to k-1 are a node, and so on (0: nodes are found by host name)")
      ->capture_default_str()
      ->check(whole_number(0, most_workers));
  c.add_option_function<std::string>(
      "--sizes",
      [o](std::string const& text) {
        o->common.sizes = numbers_in("--sizes", text, std::size_t{1}, longest_block);
      },
      "Bytes of a block, as 4096,65536 (default 4 KiB to 4 MiB, each four times the one before)");
  c.add_option_function<std::string>(
      "--ways",
      [o](std::string const& text) {
        o->ways = words_in(text);
        for (std::string word : o->ways)
          if (std::string const problem = one_of(way_names())(word); !problem.empty())
            throw CLI::ValidationError("--ways", problem);
      },
      "Of library (MPI_Neighbor_allgather), auto and the routes those to time (default: all)");
  o->common.measure.add(c);
}

void add_one(CLI::App& bench, char const* name, char const* group, Arguments const& arguments,
             std::function<int()>& work) {
  auto o = std::make_shared<NeighborOptions>();
  o->common.measure.protocol = {2, 10, 5};
  for (std::size_t bytes = 4096; bytes <= std::size_t{4} << 20; bytes *= 4) o->common.sizes.push_back(bytes);
  CLI::App* c =
      bench.add_subcommand(name, "Neighbourhood allgathers by every route, beside the MPI library's own");
  c->group(group);
  add_neighbor_options(*c, o);
  c->callback([o, c, &arguments, &work] {
    work = [o, c, &arguments] {
      std::string const& json = o->common.measure.json;
      if (!json.empty() && json != "-") check_whole_file(json);
      for (auto const& [pattern, option] : {std::pair("moore", "--density"),
                                            {"moore", "--seed"},
                                            {"rsg", "--dimension"},
                                            {"rsg", "--radius"}})
        if (o->pattern == pattern && c->count(option) > 0)
          throw Error(
              ErrorCode::usage,
              fmt::format("{} with --pattern {} (it is the other pattern's). Drop it.", option, pattern));
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
