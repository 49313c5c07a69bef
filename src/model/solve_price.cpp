#include "hostless/model/solve_price.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "hostless/base/error.hpp"
#include "hostless/model/price.hpp"

namespace hostless {
namespace {

constexpr double messages_off = 0.26;  // 90th percentile, docs/machine-files.md
constexpr double sum_bytes = 8;

[[noreturn]] void no_data(MachineModel const& machine, std::string const& what) {
  throw Error(ErrorCode::bad_input,
              fmt::format("{}: no data of {}. Add them to a copy of its file, or name another machine.",
                          machine.name, what));
}

template <class Entry>
Entry const* find(std::vector<Entry> const& all, MemoryKind memory) {
  auto const found =
      std::find_if(all.begin(), all.end(), [&](Entry const& entry) { return entry.memory == memory; });
  return found == all.end() ? nullptr : &*found;
}

int doublings(int n) { return std::bit_width(static_cast<unsigned>(n - 1)); }

void add_source(IterationPrice& price, MachineModel const& machine, std::string const& source) {
  auto const words = machine.sources.find(source);
  std::string const text = words == machine.sources.end() ? source : words->second;
  if (std::find(price.sources.begin(), price.sources.end(), text) == price.sources.end())
    price.sources.push_back(text);
}

double message(MachineModel const& machine, MessageSpan span, MemoryKind memory) {
  if (machine.costs.find(span, memory) == nullptr)
    no_data(machine, fmt::format("sums of {} memory, nor of {} messages of it", name(memory), name(span)));
  return price(machine, {span, memory, sum_bytes, 1, 1}).seconds;
}

void add_sums(IterationPrice& price, MachineModel const& machine, PricedMethod method,
              SolveSetting const& setting) {
  if (setting.nodes * setting.ranks_per_node == 1) return;
  int const count = method == PricedMethod::cg ? 2 : 1;
  int const inside = doublings(setting.ranks_per_node), between = doublings(setting.nodes);
  if (SumCosts const* costs = find(machine.sums, setting.sums_in)) {
    price.sums_on_node = count * inside * costs->on_node;
    price.sums_between = count * between * costs->between_nodes;
    add_source(price, machine, costs->source);
  } else {
    MessageSpan const span = machine.node.sockets == 1 ? MessageSpan::on_socket : MessageSpan::on_node;
    if (inside > 0) price.sums_on_node = count * inside * message(machine, span, setting.sums_in);
    if (between > 0)
      price.sums_between = count * between * message(machine, MessageSpan::off_node, setting.sums_in);
    for (auto const& [doubled, at] : {std::pair(inside, span), {between, MessageSpan::off_node}})
      if (doubled > 0) add_source(price, machine, machine.costs.find(at, setting.sums_in)->source);
    price.notes.push_back("no data of sums: a message of 8 bytes for each doubling of ranks");
  }
  if (setting.sums_in == setting.memory) return;
  if (setting.memory == MemoryKind::host)
    throw Error(ErrorCode::usage,
                "sums of GPU memory where vectors lie in the host's (nothing is there to add). Use host.");
  for (CopyDirection direction : {CopyDirection::device_to_host, CopyDirection::host_to_device}) {
    CopyCosts const* const copy = machine.costs.find(direction, 1);
    if (copy == nullptr) no_data(machine, fmt::format("copies {}", name(direction)));
    price.sum_copies += count * copy->line.at(sum_bytes);
    add_source(price, machine, copy->source);
  }
}

void check(SolveShare const& share, SolveSetting const& setting) {
  if (!(share.rows > 0) || !(share.entries >= 0) || !(share.border_rows >= 0) ||
      share.border_rows > share.rows)
    throw Error(ErrorCode::usage, fmt::format("{} rows, {} entries, {} border rows", share.rows,
                                              share.entries, share.border_rows));
  if (setting.nodes < 1 || setting.ranks_per_node < 1)
    throw Error(ErrorCode::usage,
                fmt::format("{} nodes of {} ranks (at least 1)", setting.nodes, setting.ranks_per_node));
}

// Of the kernels of an iteration: a product in two parts, two sums, and the updates.
double all_launches(IterationPrice& price, MachineModel const& machine, PricedMethod method) {
  if (!machine.triggers || !machine.triggers->kernel_launch) {
    price.notes.push_back("no data of kernel launches: not counted");
    return 0;
  }
  int const kernels = 4 + (method == PricedMethod::cg ? 3 : 6);
  add_source(price, machine, machine.triggers->source);
  return kernels * *machine.triggers->kernel_launch;
}

void add_exchange(IterationPrice& price, ExchangePrice const& exchange) {
  price.exchange = exchange.seconds;
  price.sources.insert(price.sources.end(), exchange.sources.begin(), exchange.sources.end());
  price.notes.insert(price.notes.end(), exchange.notes.begin(), exchange.notes.end());
}

}  // namespace

char const* name(PricedMethod method) { return method == PricedMethod::cg ? "cg" : "pipelined-cg"; }

double product_bytes(SolveShare const& share) { return 20 * (share.entries + share.rows); }

double vector_bytes(PricedMethod method, SolveShare const& share) {
  return (24 * (method == PricedMethod::cg ? 3 : 6) + 24) * share.rows;
}

MachineModel with_all_spans(MachineModel machine, std::vector<std::string>& notes) {
  for (MemoryKind memory : all_memory_kinds) {
    MessageCosts const* const off = machine.costs.find(MessageSpan::off_node, memory);
    if (off == nullptr || off->pieces.empty()) continue;
    MessageCosts const between = *off;
    for (MessageSpan span : {MessageSpan::on_socket, MessageSpan::on_node}) {
      if (machine.costs.find(span, memory) != nullptr) continue;
      machine.costs.messages.push_back(between);
      machine.costs.messages.back().span = span;
      notes.push_back(fmt::format("no data of {} messages of {} memory: priced as those between nodes",
                                  name(span), name(memory)));
    }
  }
  return machine;
}

IterationPrice price_iteration(MachineModel const& machine, PricedMethod method, SolveShare const& share,
                               SolveSetting const& setting, ExchangePrice const* exchange) {
  check(share, setting);
  MemoryRate const* const memory = find(machine.memory, setting.memory);
  if (memory == nullptr)
    no_data(machine, fmt::format("the bandwidth of {} memory ('memory')", name(setting.memory)));
  double const parts = setting.memory == MemoryKind::host ? setting.ranks_per_node : 1;
  double const inner = 1 - share.border_rows / share.rows;
  double const product = product_bytes(share) * parts, vectors = vector_bytes(method, share) * parts;
  IterationPrice price;
  add_source(price, machine, memory->source);
  add_sums(price, machine, method, setting);
  double const launches = setting.memory == MemoryKind::gpu ? all_launches(price, machine, method) : 0;
  if (exchange != nullptr) add_exchange(price, *exchange);
  // What overlaps is compared anew for each rate: the product hides the exchange, work hides launches.
  auto const at = [&](double rate, double off) {
    price.product = product / rate;
    price.vectors = vectors / rate;
    price.halo = std::max(0.0, off * price.exchange - price.product * inner);
    price.launches = std::max(0.0, launches - price.product - price.vectors);
    return price.product + price.vectors + price.halo + off * price.sums() + price.launches;
  };
  price.least = at(memory->most, 1 - messages_off);
  price.most = at(memory->least, 1 + messages_off);
  price.seconds = at(memory->bytes_per_s, 1);
  return price;
}

}  // namespace hostless
