#include <fmt/format.h>

#include <algorithm>

#include "hostless/model/machine_model.hpp"
#include "model/json_file.hpp"
#include "model/names.hpp"

namespace hostless {
namespace {

// Of all entries; the short name must be one of the file's sources.
std::string source_of(JsonValue const& entry, MachineModel const& machine) {
  std::string const source = entry.at("source").text();
  if (!machine.sources.contains(source))
    entry.at("source").fail(fmt::format("'{}' is none of the file's sources", source));
  return source;
}

Line line_of(JsonValue const& entry) {
  return {entry.at("alpha_s").number(units::seconds),
          entry.at("beta_s_per_byte").number(units::seconds_per_byte)};
}

// Sizes rise, and the last entry has null.
template <class Entry>
double up_to_of(JsonValue const& entry, std::vector<Entry> const& before, bool last) {
  JsonValue const value = entry.at("up_to_bytes");
  if (last) {
    if (!value.is_null())
      value.fail(fmt::format("{} where null must be (the last piece has no end)", value.shown()));
    return endless;
  }
  double const bytes = value.number(units::bytes);
  if (!before.empty() && bytes <= before.back().up_to)
    value.fail(
        fmt::format("{} is not above {:g}, where the piece before ends", value.shown(), before.back().up_to));
  return bytes;
}

std::vector<MessagePiece> pieces_of(JsonValue const& value) {
  std::vector<MessagePiece> pieces;
  if (value.is_no_data()) return pieces;
  auto const list = value.list();
  for (JsonValue const& entry : list) {
    entry.require_keys({"protocol", "transfer", "up_to_bytes", "alpha_s", "beta_s_per_byte"});
    MessagePiece piece;
    piece.protocol = static_cast<Protocol>(entry.at("protocol").choice(names_of(all_protocols)));
    piece.transfer = static_cast<Transfer>(entry.at("transfer").choice(names_of(all_transfers)));
    piece.up_to = up_to_of(entry, pieces, &entry == &list.back());
    piece.line = line_of(entry);
    if (!pieces.empty() && piece.protocol < pieces.back().protocol)
      entry.at("protocol")
          .fail(fmt::format("'{}' after '{}' (sizes rise: short, eager, rendezvous)", name(piece.protocol),
                            name(pieces.back().protocol)));
    if (piece.line.alpha == 0.0 && piece.line.beta == 0.0)
      entry.at("alpha_s").fail("a message that takes no time");
    pieces.push_back(piece);
  }
  return pieces;
}

std::vector<FollowingPiece> following_of(JsonValue const& value) {
  std::vector<FollowingPiece> pieces;
  auto const list = value.list();
  for (JsonValue const& entry : list) {
    entry.require_keys({"up_to_bytes", "alpha_s", "beta_s_per_byte"});
    double const up_to = up_to_of(entry, pieces, &entry == &list.back());
    pieces.push_back({up_to, line_of(entry)});
  }
  return pieces;
}

std::vector<MessageCosts> messages_of(JsonValue const& value, MachineModel const& machine) {
  std::vector<MessageCosts> all;
  if (value.is_no_data()) return all;
  for (JsonValue const& entry : value.list()) {
    entry.require_keys({"locality", "memory", "pieces", "source"}, {"following", "queue_search_s"});
    MessageCosts costs;
    costs.span = static_cast<MessageSpan>(entry.at("locality").choice(names_of(all_spans)));
    costs.memory = static_cast<MemoryKind>(entry.at("memory").choice(names_of(all_memory_kinds)));
    costs.pieces = pieces_of(entry.at("pieces"));
    if (entry.has("following")) costs.following = following_of(entry.at("following"));
    if (entry.has("queue_search_s"))
      costs.queue_search = entry.at("queue_search_s").number(units::search_seconds);
    costs.source = source_of(entry, machine);
    for (MessageCosts const& other : all)
      if (other.span == costs.span && other.memory == costs.memory)
        entry.fail(
            fmt::format("{} messages of {} memory are there twice", name(costs.span), name(costs.memory)));
    if (costs.pieces.empty() && !costs.following.empty())
      entry.at("following").fail("there are no pieces that they follow");
    all.push_back(std::move(costs));
  }
  return all;
}

std::vector<InjectionCosts> injection_of(JsonValue const& value, MachineModel const& machine) {
  std::vector<InjectionCosts> all;
  if (value.is_no_data()) return all;
  for (JsonValue const& entry : value.list()) {
    entry.require_keys({"memory", "limits", "sharpness", "source"});
    InjectionCosts costs;
    costs.memory = static_cast<MemoryKind>(entry.at("memory").choice(names_of(all_memory_kinds)));
    auto const list = entry.at("limits").list();
    for (JsonValue const& limit : list) {
      limit.require_keys({"up_to_bytes", "per", "s_per_byte"});
      double const up_to = up_to_of(limit, costs.limits, &limit == &list.back());
      bool const socket = limit.at("per").choice({"node", "socket"}) == 1;
      costs.limits.push_back({up_to, socket, limit.at("s_per_byte").number(units::seconds_per_byte)});
    }
    costs.sharpness =
        entry.at("sharpness").is_null() ? endless : entry.at("sharpness").number(units::exponent);
    costs.source = source_of(entry, machine);
    for (InjectionCosts const& other : all)
      if (other.memory == costs.memory)
        entry.fail(fmt::format("{} memory is there twice", name(costs.memory)));
    all.push_back(std::move(costs));
  }
  return all;
}

std::vector<CopyCosts> copies_of(JsonValue const& value, MachineModel const& machine) {
  std::vector<CopyCosts> all;
  if (value.is_no_data()) return all;
  for (JsonValue const& entry : value.list()) {
    entry.require_keys({"direction", "processes", "alpha_s", "beta_s_per_byte", "source"});
    CopyCosts costs;
    costs.direction = static_cast<CopyDirection>(entry.at("direction").choice(names_of(all_copy_directions)));
    costs.processes = entry.at("processes").whole(1, 1024);
    costs.line = line_of(entry);
    costs.source = source_of(entry, machine);
    for (CopyCosts const& other : all)
      if (other.direction == costs.direction && other.processes == costs.processes)
        entry.fail(
            fmt::format("copies {} of {} processes are there twice", name(costs.direction), costs.processes));
    all.push_back(std::move(costs));
  }
  return all;
}

CostTables tables_of(JsonValue const& value, MachineModel const& machine) {
  return {messages_of(value.at("messages"), machine), injection_of(value.at("injection"), machine),
          copies_of(value.at("copies"), machine)};
}

NodeShape node_of(JsonValue const& value, MachineModel const& machine) {
  value.require_keys(
      {"sockets", "cores_per_socket", "gpus_per_socket", "dies_per_gpu", "network_cards", "source"});
  NodeShape node;
  node.sockets = value.at("sockets").whole(1, 64);
  node.cores_per_socket = value.at("cores_per_socket").whole(1, 4096);
  node.gpus_per_socket = value.at("gpus_per_socket").whole(0, 256);
  node.dies_per_gpu = value.at("dies_per_gpu").whole(1, 16);
  node.network_cards = value.at("network_cards").whole(0, 64);
  node.source = source_of(value, machine);
  if (node.gpus_per_socket % node.dies_per_gpu != 0)
    value.at("dies_per_gpu")
        .fail(fmt::format("{} does not divide the {} of a socket", node.dies_per_gpu, node.gpus_per_socket));
  return node;
}

// "gpu3", "socket0", "card1": something that the node has.
std::string end_of(JsonValue const& value, NodeShape const& node) {
  std::string const text = value.text();
  std::size_t const digits = text.find_first_of("0123456789");
  std::string const what = text.substr(0, digits);
  int const count = what == "gpu"      ? node.gpus()
                    : what == "socket" ? node.sockets
                    : what == "card"   ? node.network_cards
                                       : 0;
  std::string const number = digits == std::string::npos ? "" : text.substr(digits);
  bool const plain =
      !number.empty() && number.size() < 5 && number.find_first_not_of("0123456789") == std::string::npos;
  if (count == 0 || !plain || std::stoi(number) >= count)
    value.fail(fmt::format("'{}' is none of the node's {} gpu, {} socket and {} card", text, node.gpus(),
                           node.sockets, node.network_cards));
  return text;
}

std::vector<NodeLink> links_of(JsonValue const& value, MachineModel const& machine) {
  std::vector<NodeLink> all;
  if (value.is_no_data()) return all;
  for (JsonValue const& entry : value.list()) {
    entry.require_keys({"from", "to", "kind", "links", "hops", "bytes_per_s", "source"});
    NodeLink link;
    link.from = end_of(entry.at("from"), machine.node);
    link.to = end_of(entry.at("to"), machine.node);
    if (link.from == link.to) entry.at("to").fail(fmt::format("'{}' is linked with itself", link.to));
    link.kind = entry.at("kind").text();
    if (!entry.at("links").is_no_data()) link.links = entry.at("links").whole(1, 1024);
    link.hops = entry.at("hops").whole(1, 64);
    if (!entry.at("bytes_per_s").is_no_data())
      link.bytes_per_s = entry.at("bytes_per_s").number(units::bytes_per_second);
    link.source = source_of(entry, machine);
    all.push_back(std::move(link));
  }
  return all;
}

std::optional<TriggerCosts> triggers_of(JsonValue const& value, MachineModel const& machine) {
  if (value.is_no_data()) return {};
  TriggerCosts costs;
  value.require_keys({"source"}, {"kernel_launch_s", "graph_node_s", "grid_barrier_s", "flagged_word_s",
                                  "stream_flag_s", "all_reduce_s"});
  for (auto const& [key, member] : trigger_members)
    if (value.has(key)) costs.*member = value.at(key).number(units::seconds);
  costs.source = source_of(value, machine);
  return costs;
}

template <class Entry>
void require_once(JsonValue const& value, std::vector<Entry> const& before, MemoryKind memory) {
  for (Entry const& other : before)
    if (other.memory == memory) value.fail(fmt::format("{} memory is there twice", name(memory)));
}

SweepRate rate_of(JsonValue const& entry) {
  SweepRate const rate{entry.at("bytes_per_s").number(units::bytes_per_second),
                       entry.at("least_bytes_per_s").number(units::bytes_per_second),
                       entry.at("most_bytes_per_s").number(units::bytes_per_second)};
  if (rate.least > rate.bytes_per_s || rate.most < rate.bytes_per_s)
    entry.at("bytes_per_s")
        .fail(fmt::format("{:g} is not between the least, {:g}, and the most, {:g}", rate.bytes_per_s,
                          rate.least, rate.most));
  return rate;
}

std::vector<MemoryRate> memory_of(JsonValue const& value, MachineModel const& machine) {
  std::vector<MemoryRate> all;
  if (value.is_no_data()) return all;
  for (JsonValue const& entry : value.list()) {
    entry.require_keys({"memory", "bytes_per_s", "least_bytes_per_s", "most_bytes_per_s", "source"},
                       {"products", "bytes"});
    MemoryRate rate;
    rate.memory = static_cast<MemoryKind>(entry.at("memory").choice(names_of(all_memory_kinds)));
    rate.vectors = rate_of(entry);
    if (entry.has("products")) {
      entry.at("products").require_keys({"bytes_per_s", "least_bytes_per_s", "most_bytes_per_s"});
      rate.products = rate_of(entry.at("products"));
    }
    if (entry.has("bytes")) rate.bytes = entry.at("bytes").number(units::bytes);
    rate.source = source_of(entry, machine);
    require_once(entry.at("memory"), all, rate.memory);
    all.push_back(std::move(rate));
  }
  return all;
}

std::vector<SumCosts> sums_of(JsonValue const& value, MachineModel const& machine) {
  std::vector<SumCosts> all;
  if (value.is_no_data()) return all;
  for (JsonValue const& entry : value.list()) {
    entry.require_keys({"memory", "on_node_s", "between_nodes_s", "source"});
    SumCosts costs;
    costs.memory = static_cast<MemoryKind>(entry.at("memory").choice(names_of(all_memory_kinds)));
    if (!entry.at("on_node_s").is_no_data()) costs.on_node = entry.at("on_node_s").number(units::seconds);
    if (!entry.at("between_nodes_s").is_no_data())
      costs.between_nodes = entry.at("between_nodes_s").number(units::seconds);
    costs.source = source_of(entry, machine);
    require_once(entry.at("memory"), all, costs.memory);
    all.push_back(std::move(costs));
  }
  return all;
}

}  // namespace

MachineModel parse_machine(std::string_view text, std::string const& file) {
  JsonFile const document(text, file);
  JsonValue const root(document);
  root.require_keys({"format", "version", "name", "description", "sources", "nodes", "node", "links",
                     "messages", "injection", "copies", "triggers"},
                    {"published", "memory", "sums"});
  root.at("format").choice({"hostless-machine"});
  root.at("version").whole(MachineModel::current_version, MachineModel::current_version);
  MachineModel machine;
  machine.name = root.at("name").text();
  machine.description = root.at("description").text();
  for (std::string const& key : root.at("sources").keys())
    machine.sources[key] = root.at("sources").at(key).text();
  if (!root.at("nodes").is_no_data()) machine.nodes = root.at("nodes").whole(1, 1 << 24);
  machine.node = node_of(root.at("node"), machine);
  machine.links = links_of(root.at("links"), machine);
  machine.costs = tables_of(root, machine);
  machine.triggers = triggers_of(root.at("triggers"), machine);
  if (root.has("memory")) machine.memory = memory_of(root.at("memory"), machine);
  if (root.has("sums")) machine.sums = sums_of(root.at("sums"), machine);
  if (root.has("published")) {
    root.at("published").require_keys({"messages", "injection", "copies"});
    machine.published = tables_of(root.at("published"), machine);
  }
  return machine;
}

}  // namespace hostless
