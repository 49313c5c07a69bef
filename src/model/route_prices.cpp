#include "model/route_prices.hpp"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "hostless/base/error.hpp"
#include "hostless/model/price.hpp"

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

std::string line_of(PricedWay const& way, bool best) {
  std::string const head = fmt::format("{} {:<11} {:<7}", best ? '*' : ' ', name(way.route), name(way.path));
  if (!way.price) return fmt::format("{} {}\n", head, way.problem);
  ExchangePrice const& price = *way.price;
  PriceTerms const& terms = price.terms;
  return fmt::format(
      "{} {:>11.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>8} {:>9} {:>14.0f}\n", head,
      1e6 * price.seconds, 1e6 * terms.copies, 1e6 * terms.messages[0], 1e6 * terms.messages[1],
      1e6 * terms.messages[2], 1e6 * terms.queue, 1e6 * terms.injection, price.last, price.most[2].messages,
      price.node_bytes);
}

}  // namespace

MachineModel machine_with_costs(std::string const& name_or_file) {
  MachineModel machine = load_machine(name_or_file);
  if (machine.costs.messages.empty())
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: no data of messages (no route can be priced there). Measure them there with "
                            "'hostless machine measure', or {}.",
                            machine.name, name_another_machine(machine.costs)));
  return machine;
}

std::vector<PricedWay> price_routes(MachineModel const& machine, PlanSet const& set, MemoryKind memory,
                                    double item_bytes) {
  std::vector<ExchangeCounts> counts;
  PlanOptions options = set.options;
  options.by_socket = false, options.dies = {};  // of the plans' own route
  NodeMap const& nodes = set.plans.front().nodes;
  bool const has_credits = options.reuse_guarantee != ReuseGuarantee::reduction;
  for (Route route : all_routes) {
    if (route == set.plans.front().route)
      counts.push_back(count_exchange(set.plans));
    else if (has_credits)
      counts.push_back(count_exchange(make_plans(route, set.patterns, nodes, options)));
    else
      counts.push_back(count_exchange(route, set.patterns, nodes, {}, options));
  }
  return price_ways(machine, counts, memory, item_bytes);
}

void take_cheapest(std::vector<PricedWay> const& ways, PlanSet& set) {
  Route const route = ways[cheapest(ways)].route;
  if (route != set.plans.front().route)
    set.plans = make_plans(route, set.patterns, set.plans.front().nodes, set.options);
}

std::string table(MachineModel const& machine, std::vector<PricedWay> const& ways, double item_bytes) {
  std::size_t const best = cheapest(ways);
  std::string text;
  auto const out = std::back_inserter(text);
  fmt::format_to(
      out,
      "{}: one exchange, {:.0f} bytes an item; us until the last rank has its ghosts, by what takes them\n",
      machine.name, item_bytes);
  fmt::format_to(out, "  {:<11} {:<7} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>9} {:>14}\n", "",
                 "", "", "", "messages", "messages", "messages", "queue", "", "last", "off node,",
                 "bytes off");
  fmt::format_to(out, "  {:<11} {:<7} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>9} {:>14}\n",
                 "route", "path", "total us", "copies", "on socket", "on node", "off node", "search",
                 "injection", "rank", "a rank", "a node, most");
  std::set<std::string> sources, notes;
  for (std::size_t k = 0; k < ways.size(); ++k) {
    text += line_of(ways[k], k == best);
    if (!ways[k].price) continue;
    sources.insert(ways[k].price->sources.begin(), ways[k].price->sources.end());
    notes.insert(ways[k].price->notes.begin(), ways[k].price->notes.end());
  }
  fmt::format_to(out, "  cheapest: {} ({})", name(ways[best].route), name(ways[best].path));
  double next = 0;
  for (std::size_t k = 0; k < ways.size(); ++k)
    if (k != best && ways[k].price && (next == 0 || ways[k].price->seconds < next))
      next = ways[k].price->seconds;
  if (double const most = ways[best].price->seconds; next > 0 && most > 0)
    fmt::format_to(out, "; the next one takes {}",
                   next < 1.005 * most ? "as long" : fmt::format("{:.3g} times as long", next / most));
  text += "\n";
  for (std::string const& source : sources) fmt::format_to(out, "  source: {}\n", source);
  for (std::string const& note : notes) fmt::format_to(out, "  note: {}\n", note);
  text += "  note: packing and unpacking are not priced\n";
  return text;
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

std::string with_prices(std::string const& summary, MachineModel const& machine,
                        std::vector<PricedWay> const& ways, double item_bytes) {
  Json json = Json::parse(summary);
  json["prices"] = json_of(machine, ways, item_bytes);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hostless
