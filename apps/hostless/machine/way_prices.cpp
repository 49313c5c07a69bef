#include "machine/way_prices.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "lists.hpp"
#include "standard_output.hpp"

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array span_keys = {"on_socket", "on_node", "off_node"};

Json traffic_of(std::array<SpanTraffic, 3> const& spans) {
  Json json;
  for (std::size_t k = 0; k < 3; ++k)
    json[span_keys[k]] = {{"messages", spans[k].messages}, {"bytes", spans[k].bytes}};
  return json;
}

Json json_of(PricedWay const& way) {
  Json json = {{"route", name(way.route)}, {"path", name(way.path)}};
  if (!way.price) {
    json["seconds"] = nullptr;
    json["problem"] = way.problem;
    return json;
  }
  ExchangePrice const& price = *way.price;
  json["seconds"] = price.seconds;
  json["terms"] = {{"copies_s", price.terms.copies},       {"on_socket_s", price.terms.messages[0]},
                   {"on_node_s", price.terms.messages[1]}, {"off_node_s", price.terms.messages[2]},
                   {"queue_search_s", price.terms.queue},  {"injection_s", price.terms.injection}};
  json["last_rank"] = price.last;
  json["path_of_ranks"] = price.path;
  json["total"] = traffic_of(price.total);
  json["most"] = traffic_of(price.most);
  json["most_node_bytes"] = price.node_bytes;
  json["ready_s"] = price.ready;
  json["sources"] = price.sources;
  json["notes"] = price.notes;
  return json;
}

void print_way(PricedWay const& way, bool best) {
  std::string const head = fmt::format("{} {:<11} {:<7}", best ? '*' : ' ', name(way.route), name(way.path));
  if (!way.price) {
    print("{} {}\n", head, way.problem);
    return;
  }
  ExchangePrice const& price = *way.price;
  PriceTerms const& terms = price.terms;
  print("{} {:>11.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>8} {:>9} {:>14.0f}\n", head,
        1e6 * price.seconds, 1e6 * terms.copies, 1e6 * terms.messages[0], 1e6 * terms.messages[1],
        1e6 * terms.messages[2], 1e6 * terms.queue, 1e6 * terms.injection, price.last, price.most[2].messages,
        price.node_bytes);
}

}  // namespace

CLI::Option* add_memory(CLI::App& command, MemoryKind& memory) {
  return command
      .add_option_function<std::string>(
          "--memory",
          [&memory](std::string const& text) { memory = text == "gpu" ? MemoryKind::gpu : MemoryKind::host; },
          "Where the items lie: host, or gpu, from where they are sent as they lie or by the host (default "
          "host)")
      ->check(one_of({"host", "gpu"}));
}

void print_ways(MachineModel const& machine, std::vector<PricedWay> const& ways, double item_bytes) {
  std::size_t const best = cheapest(ways);
  print("{}: one exchange, {:.0f} bytes an item; us until the last rank has its ghosts, by what takes them\n",
        machine.name, item_bytes);
  print("  {:<11} {:<7} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>9} {:>14}\n", "", "", "", "",
        "messages", "messages", "messages", "queue", "", "last", "off node,", "bytes off");
  print("  {:<11} {:<7} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>9} {:>14}\n", "route", "path",
        "total us", "copies", "on socket", "on node", "off node", "search", "injection", "rank", "a rank",
        "a node, most");
  std::set<std::string> sources, notes;
  for (std::size_t k = 0; k < ways.size(); ++k) {
    print_way(ways[k], k == best);
    if (!ways[k].price) continue;
    sources.insert(ways[k].price->sources.begin(), ways[k].price->sources.end());
    notes.insert(ways[k].price->notes.begin(), ways[k].price->notes.end());
  }
  print("  cheapest: {} ({})", name(ways[best].route), name(ways[best].path));
  double next = 0;
  for (std::size_t k = 0; k < ways.size(); ++k)
    if (k != best && ways[k].price && (next == 0 || ways[k].price->seconds < next))
      next = ways[k].price->seconds;
  if (next > 0 && ways[best].price->seconds > 0)
    print(", {:.3g} of the next one's time", ways[best].price->seconds / next);
  print("\n");
  for (std::string const& source : sources) print("  source: {}\n", source);
  for (std::string const& note : notes) print("  note: {}\n", note);
  print("  note: packing and unpacking are not priced\n");
}

Json json_of(MachineModel const& machine, std::vector<PricedWay> const& ways, double item_bytes) {
  PricedWay const& best = ways[cheapest(ways)];
  Json all = Json::array();
  for (PricedWay const& way : ways) all.push_back(json_of(way));
  return {{"machine", machine.name},
          {"item_bytes", item_bytes},
          {"cheapest", {{"route", name(best.route)}, {"path", name(best.path)}}},
          {"ways", std::move(all)}};
}

}  // namespace hostless
