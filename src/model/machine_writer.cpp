#include <cmath>
#include <nlohmann/json.hpp>

#include "hostless/model/machine_model.hpp"
#include "model/names.hpp"

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;

Json end_json(double up_to) { return std::isinf(up_to) ? Json(nullptr) : Json(up_to); }
Json no_data_if_empty(Json list) { return list.empty() ? Json("no data") : list; }

Json messages_json(std::vector<MessageCosts> const& all) {
  Json list = Json::array();
  for (MessageCosts const& costs : all) {
    Json pieces = Json::array(), following = Json::array();
    for (MessagePiece const& p : costs.pieces)
      pieces.push_back({{"protocol", name(p.protocol)},
                        {"transfer", name(p.transfer)},
                        {"up_to_bytes", end_json(p.up_to)},
                        {"alpha_s", p.line.alpha},
                        {"beta_s_per_byte", p.line.beta}});
    for (FollowingPiece const& p : costs.following)
      following.push_back(
          {{"up_to_bytes", end_json(p.up_to)}, {"alpha_s", p.line.alpha}, {"beta_s_per_byte", p.line.beta}});
    Json entry = {
        {"locality", name(costs.span)}, {"memory", name(costs.memory)}, {"pieces", no_data_if_empty(pieces)}};
    if (!following.empty()) entry["following"] = following;
    if (costs.queue_search > 0) entry["queue_search_s"] = costs.queue_search;
    entry["source"] = costs.source;
    list.push_back(entry);
  }
  return no_data_if_empty(list);
}

Json injection_json(std::vector<InjectionCosts> const& all) {
  Json list = Json::array();
  for (InjectionCosts const& costs : all) {
    Json limits = Json::array();
    for (InjectionLimit const& limit : costs.limits)
      limits.push_back({{"up_to_bytes", end_json(limit.up_to)},
                        {"per", limit.per_socket ? "socket" : "node"},
                        {"s_per_byte", limit.seconds_per_byte}});
    list.push_back({{"memory", name(costs.memory)},
                    {"limits", limits},
                    {"sharpness", end_json(costs.sharpness)},
                    {"source", costs.source}});
  }
  return no_data_if_empty(list);
}

Json copies_json(std::vector<CopyCosts> const& all) {
  Json list = Json::array();
  for (CopyCosts const& costs : all)
    list.push_back({{"direction", name(costs.direction)},
                    {"processes", costs.processes},
                    {"alpha_s", costs.line.alpha},
                    {"beta_s_per_byte", costs.line.beta},
                    {"source", costs.source}});
  return no_data_if_empty(list);
}

Json tables_json(CostTables const& tables) {
  return {{"messages", messages_json(tables.messages)},
          {"injection", injection_json(tables.injection)},
          {"copies", copies_json(tables.copies)}};
}

Json links_json(std::vector<NodeLink> const& all) {
  Json list = Json::array();
  for (NodeLink const& link : all)
    list.push_back({{"from", link.from},
                    {"to", link.to},
                    {"kind", link.kind},
                    {"links", link.links ? Json(*link.links) : Json("no data")},
                    {"hops", link.hops},
                    {"bytes_per_s", link.bytes_per_s ? Json(*link.bytes_per_s) : Json("no data")},
                    {"source", link.source}});
  return no_data_if_empty(list);
}

Json triggers_json(std::optional<TriggerCosts> const& costs) {
  if (!costs) return "no data";
  Json entry = Json::object();
  for (auto const& [key, member] : trigger_members)
    if (std::optional<double> const& value = (*costs).*member) entry[key] = *value;
  entry["source"] = costs->source;
  return entry;
}

Json rate_json(SweepRate const& rate) {
  return {
      {"bytes_per_s", rate.bytes_per_s}, {"least_bytes_per_s", rate.least}, {"most_bytes_per_s", rate.most}};
}

Json memory_json(std::vector<MemoryRate> const& all) {
  Json list = Json::array();
  for (MemoryRate const& rate : all) {
    Json entry = {{"memory", name(rate.memory)}};
    entry.update(rate_json(rate.vectors));
    if (rate.products) entry["products"] = rate_json(*rate.products);
    if (rate.bytes) entry["bytes"] = *rate.bytes;
    entry["source"] = rate.source;
    list.push_back(std::move(entry));
  }
  return list;
}

Json sums_json(std::vector<SumCosts> const& all) {
  Json list = Json::array();
  for (SumCosts const& costs : all)
    list.push_back({{"memory", name(costs.memory)},
                    {"on_node_s", costs.on_node ? Json(*costs.on_node) : Json("no data")},
                    {"between_nodes_s", costs.between_nodes ? Json(*costs.between_nodes) : Json("no data")},
                    {"source", costs.source}});
  return list;
}

}  // namespace

std::string to_json(MachineModel const& machine) {
  NodeShape const& node = machine.node;
  Json out = {{"format", "hostless-machine"},
              {"version", MachineModel::current_version},
              {"name", machine.name},
              {"description", machine.description},
              {"sources", machine.sources},
              {"nodes", machine.nodes ? Json(*machine.nodes) : Json("no data")},
              {"node",
               {{"sockets", node.sockets},
                {"cores_per_socket", node.cores_per_socket},
                {"gpus_per_socket", node.gpus_per_socket},
                {"dies_per_gpu", node.dies_per_gpu},
                {"network_cards", node.network_cards},
                {"source", node.source}}},
              {"links", links_json(machine.links)}};
  out.update(tables_json(machine.costs));
  out["triggers"] = triggers_json(machine.triggers);
  if (!machine.memory.empty()) out["memory"] = memory_json(machine.memory);
  if (!machine.sums.empty()) out["sums"] = sums_json(machine.sums);
  if (machine.published) out["published"] = tables_json(*machine.published);
  return out.dump(1) + "\n";
}

}  // namespace hostless
