#include "hostless/model/solve_price.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "hostless/base/error.hpp"
#include "hostless/model/price.hpp"
#include "model/price_parts.hpp"

namespace hostless {
namespace {

constexpr double sum_bytes = 8;
constexpr double host_product_vectors = 16;  // a value read and one written

[[noreturn]] void no_data(MachineModel const& machine, std::string const& what, std::string const& instead) {
  throw Error(ErrorCode::bad_input, fmt::format("{}: no data of {}. Add them to a copy of its file, or {}.",
                                                machine.name, what, instead));
}

void add_source(std::vector<std::string>& all, MachineModel const& machine, std::string const& source) {
  std::string const text = in_words(machine, {source}).front();
  if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
}

double message(MachineModel const& machine, MessageSpan span, MemoryKind memory, double bytes) {
  if (machine.costs.find(span, memory) == nullptr)
    no_data(machine, fmt::format("sums of {} memory, nor of {} messages of it", name(memory), name(span)),
            name_another_machine(machine.costs));
  return price(machine, {span, memory, bytes, 1, 1}).seconds;
}

void add_sums(IterationPrice& price, MachineModel const& machine, PricedMethod method,
              SolveSetting const& setting) {
  if (setting.nodes * setting.ranks_per_node == 1) return;
  int const count = counts_of(method).sums;
  SumPrice const sum = price_sum(machine, setting.nodes, setting.ranks_per_node, setting.sums_in, sum_bytes);
  price.sums_on_node = count * sum.on_node;
  price.sums_between = count * sum.between;
  for (std::string const& source : sum.sources) add_source(price.sources, machine, source);
  price.notes.insert(price.notes.end(), sum.notes.begin(), sum.notes.end());
  if (setting.sums_in == setting.memory) return;
  if (setting.memory == MemoryKind::host)
    throw Error(ErrorCode::usage,
                "sums of GPU memory where vectors lie in the host's (nothing is there to add). Use host.");
  for (CopyDirection direction : {CopyDirection::device_to_host, CopyDirection::host_to_device}) {
    CopyCosts const* const copy = machine.costs.find(direction, 1);
    if (copy == nullptr)
      no_data(machine, fmt::format("copies {}", name(direction)), name_another_machine(machine.costs));
    price.sum_copies += count * copy->line.at(sum_bytes);
    add_source(price.sources, machine, copy->source);
  }
}

void check(SolveShare const& share, SolveSetting const& setting) {
  if (!(share.rows > 0) || !(share.entries >= 0) || !(share.border_rows >= 0) ||
      share.border_rows > share.rows)
    throw Error(ErrorCode::usage, fmt::format("{} rows, {} entries, {} border rows", share.rows,
                                              share.entries, share.border_rows));
  if (setting.memory == MemoryKind::host && !(share.stored_bytes > 0))
    throw Error(
        ErrorCode::usage,
        fmt::format("{} stored bytes (a processor reads the matrix as it stores it)", share.stored_bytes));
  if (setting.nodes < 1 || setting.ranks_per_node < 1)
    throw Error(ErrorCode::usage,
                fmt::format("{} nodes of {} ranks (at least 1)", setting.nodes, setting.ranks_per_node));
}

// Of the kernels of an iteration: each product in two parts, dots, and updates.
double all_launches(IterationPrice& price, MachineModel const& machine, PricedMethod method) {
  if (!machine.triggers || !machine.triggers->kernel_launch) {
    price.notes.push_back("no data of kernel launches: not counted");
    return 0;
  }
  IterationCounts const& counts = counts_of(method);
  int const kernels = 2 * counts.products + counts.dots + counts.updates;
  add_source(price.sources, machine, machine.triggers->source);
  return kernels * *machine.triggers->kernel_launch;
}

void add_exchanges(IterationPrice& price, ExchangePrice const& exchange, int count) {
  price.exchange = count * exchange.seconds;
  price.sources.insert(price.sources.end(), exchange.sources.begin(), exchange.sources.end());
  price.notes.insert(price.notes.end(), exchange.notes.begin(), exchange.notes.end());
}

}  // namespace

MemoryRate const& memory_rate(MachineModel const& machine, MemoryKind memory) {
  auto const found = std::find_if(machine.memory.begin(), machine.memory.end(),
                                  [&](MemoryRate const& rate) { return rate.memory == memory; });
  if (found == machine.memory.end())
    no_data(machine, fmt::format("the bandwidth of {} memory ('memory')", name(memory)),
            "name another machine");
  return *found;
}

int doublings(int n) { return std::bit_width(static_cast<unsigned>(n - 1)); }

std::optional<SumCosts> sums_of_measured(double seconds, int nodes, int ranks_per_node,
                                         MachineModel const& machine) {
  SumCosts sums{MemoryKind::host, {}, {}, "sums"};
  if (nodes == 1) {
    sums.on_node = seconds / doublings(ranks_per_node);
    return sums;
  }
  double inside = 0;
  for (MessageSpan span : {MessageSpan::on_node, MessageSpan::on_socket})
    if (ranks_per_node > 1 && inside == 0 && machine.costs.find(span, MemoryKind::host) != nullptr)
      inside = doublings(ranks_per_node) * price(machine, {span, MemoryKind::host, sum_bytes, 1, 1}).seconds;
  if (seconds <= inside) return {};
  sums.between_nodes = (seconds - inside) / doublings(nodes);
  return sums;
}

SumPrice price_sum(MachineModel const& machine, int nodes, int ranks_per_node, MemoryKind memory,
                   double bytes) {
  if (nodes < 1 || ranks_per_node < 1 || !(bytes >= 0) || std::isinf(bytes))
    throw Error(ErrorCode::usage,
                fmt::format("a sum of {} bytes on {} nodes of {} ranks (there is nothing to "
                            "price). Give at least one of each.",
                            bytes, nodes, ranks_per_node));
  int const inside = doublings(ranks_per_node), between = doublings(nodes);
  auto const costs = std::find_if(machine.sums.begin(), machine.sums.end(),
                                  [&](SumCosts const& one) { return one.memory == memory; });
  bool const known = costs != machine.sums.end() && bytes <= sum_bytes;
  SumPrice price;
  auto const doubled = [&](int times, std::optional<double> SumCosts::*each, MessageSpan span) {
    if (times == 0) return 0.0;
    if (known && (*costs).*each) {
      add_source(price.sources, machine, costs->source);
      return times * *((*costs).*each);
    }
    double const seconds = times * message(machine, span, memory, bytes);
    add_source(price.sources, machine, machine.costs.find(span, memory)->source);
    std::string note = fmt::format("no data of sums{}: a message of {:g} bytes for each doubling of ranks",
                                   bytes > sum_bytes ? " of that size" : "", bytes);
    if (std::find(price.notes.begin(), price.notes.end(), note) == price.notes.end())
      price.notes.push_back(std::move(note));
    return seconds;
  };
  price.on_node = doubled(inside, &SumCosts::on_node,
                          machine.node.sockets == 1 ? MessageSpan::on_socket : MessageSpan::on_node);
  price.between = doubled(between, &SumCosts::between_nodes, MessageSpan::off_node);
  return price;
}

IterationCounts const& counts_of(PricedMethod method) {
  static constexpr std::array<IterationCounts, all_priced_methods.size()> all{
      {{"cg", 1, 2, 3, 2, 24, 88, 5},
       {"pipelined-cg", 1, 1, 6, 2, 24, 128, 8},
       // p, s, x twice and r (p by two); (shadow, v), (t, s), (shadow, r), |t| and |r|.
       {"bicgstab", 2, 3, 6, 5, 64, 200, 7}}};
  return all[static_cast<std::size_t>(method)];
}

double product_bytes(SolveShare const& share, MemoryKind memory) {
  if (memory == MemoryKind::host) return share.stored_bytes + host_product_vectors * share.rows;
  return 12 * share.entries + 20 * share.rows;
}

double vector_bytes(PricedMethod method, SolveShare const& share, MemoryKind memory) {
  constexpr double update_bytes = 24;  // two values read and one written
  IterationCounts const& counts = counts_of(method);
  if (memory == MemoryKind::host)
    return (counts.host_row_bytes - counts.products * host_product_vectors) * share.rows;
  return (update_bytes * counts.updates + counts.dot_bytes) * share.rows;
}

double kept_bytes(PricedMethod method, SolveShare const& share, MemoryKind memory) {
  double const matrix = memory == MemoryKind::host ? share.stored_bytes : 12 * share.entries + 4 * share.rows;
  return matrix + 8 * counts_of(method).kept_vectors * share.rows;
}

std::string why_it_does_not_fit(MachineModel const& machine, PricedMethod method, SolveShare const& share,
                                SolveSetting const& setting) {
  MemoryRate const& memory = memory_rate(machine, setting.memory);
  double const ranks = setting.memory == MemoryKind::host ? setting.ranks_per_node : 1;
  double const kept = kept_bytes(method, share, setting.memory) * ranks;
  if (!memory.bytes || kept <= *memory.bytes) return {};
  return fmt::format("matrix and vectors of a {} take {:.1f} GiB or more, and it has {:.1f}",
                     setting.memory == MemoryKind::host ? "node" : "GPU", kept / 0x1p30,
                     *memory.bytes / 0x1p30);
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
  MemoryRate const& memory = memory_rate(machine, setting.memory);
  double const parts = setting.memory == MemoryKind::host ? setting.ranks_per_node : 1;
  double const inner = 1 - share.border_rows / share.rows;
  int const products = counts_of(method).products;
  double const product = products * product_bytes(share, setting.memory) * parts;
  double const vectors = vector_bytes(method, share, setting.memory) * parts;
  IterationPrice price;
  price.bytes = (product + vectors) / parts;
  add_source(price.sources, machine, memory.source);
  add_sums(price, machine, method, setting);
  double const launches = setting.memory == MemoryKind::gpu ? all_launches(price, machine, method) : 0;
  if (exchange != nullptr) add_exchanges(price, *exchange, products);
  // What overlaps is compared anew for each rate: the product hides the exchange, work hides launches.
  auto const at = [&](double SweepRate::*rate, double off) {
    price.product = product / (memory.products.value_or(memory.vectors).*rate);
    price.vectors = vectors / (memory.vectors.*rate);
    price.halo = std::max(0.0, off * price.exchange - price.product * inner);
    price.launches = std::max(0.0, launches - price.product - price.vectors);
    return price.product + price.vectors + price.halo + off * price.sums() + price.launches;
  };
  price.least = at(&SweepRate::most, 1 - messages_off);
  price.most = at(&SweepRate::least, 1 + messages_off);
  price.seconds = at(&SweepRate::bytes_per_s, 1);
  return price;
}

}  // namespace hostless
