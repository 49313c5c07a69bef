#include "hostless/model/price.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hostless/base/error.hpp"
#include "model/names.hpp"
#include "model/price_parts.hpp"

namespace hostless {
namespace {

constexpr double smallest = 1.0;  // byte: its time is latency alone

double alone(MessageCosts const& costs, double bytes) { return costs.piece(bytes).line.at(bytes); }

// How long a message is under way while no processor works on it.
double flight(CostTables const& tables, MessageSpan span) {
  MessageCosts const* const far = tables.find(span, MemoryKind::host);
  MessageCosts const* const near = tables.find(MessageSpan::on_socket, MemoryKind::host);
  return far && near ? std::max(0.0, alone(*far, smallest) - alone(*near, smallest)) : 0.0;
}

}  // namespace

double following_seconds(CostTables const& tables, MessageCosts const& costs, double bytes) {
  if (!costs.following.empty()) return piece_of(costs.following, bytes).line.at(bytes);
  double const first = alone(costs, bytes);
  MessageCosts const* const near = tables.find(MessageSpan::on_socket, costs.memory);
  switch (costs.piece(bytes).transfer) {
    case Transfer::inlined:
      return 0.5 * (near ? std::min(first, alone(*near, bytes)) : first);
    case Transfer::buffered:
      return 0.5 * first;
    case Transfer::direct:
      return std::max(0.5 * first, first - flight(tables, costs.span));
  }
  return first;
}

namespace {

// Seconds of the cards for what `ranks` of a node send.
double injection(InjectionCosts const& costs, NodeShape const& node, MessagePattern const& pattern,
                 int ranks) {
  InjectionLimit const& limit = piece_of(costs.limits, pattern.bytes);
  return ranks_at_limit(limit, node, pattern.memory, ranks) * static_cast<double>(pattern.messages) *
         pattern.bytes * limit.seconds_per_byte;
}

void check(MessagePattern const& pattern) {
  if (pattern.messages < 1 || pattern.active_ranks < 1 || !(pattern.bytes >= 0) || std::isinf(pattern.bytes))
    throw Error(ErrorCode::usage,
                fmt::format("{} messages of {} bytes by {} ranks (there is nothing to price). Give at least "
                            "one message, one rank and 0 bytes.",
                            pattern.messages, pattern.bytes, pattern.active_ranks));
}

void add_injection(CostTables const& tables, NodeShape const& node, MessagePattern const& pattern,
                   MessagePrice& price) {
  InjectionCosts const* const costs = tables.find(pattern.memory);
  if (costs == nullptr) {
    if (pattern.active_ranks > 1)
      price.notes.push_back(fmt::format(
          "no injection limit of {} memory is known: ranks do not slow each other", name(pattern.memory)));
    return;
  }
  double const ranks = price.seconds, own = injection(*costs, node, pattern, 1);
  price.injection = injection(*costs, node, pattern, pattern.active_ranks);
  price.injection_bound = price.injection > ranks;
  price.seconds = join_injection(ranks, price.injection, std::min(own, ranks), costs->sharpness);
  if (costs->source != price.sources.front()) price.sources.push_back(costs->source);
}

}  // namespace

void throw_no_data(CostTables const& tables, MessageSpan span, MemoryKind memory) {
  throw Error(
      ErrorCode::bad_input,
      fmt::format("no data of {} messages of {} memory (they cannot be priced). {}, or {}.", name(span),
                  name(memory),
                  memory == MemoryKind::host ? "Measure them there with 'hostless machine measure'"
                                             : "Time them there and give the times to 'hostless machine fit'",
                  name_another_machine(tables)));
}

std::string name_another_machine(CostTables const& tables) {
  return tables.messages.empty() ? "name another machine; 'hostless predict' takes the messages of another "
                                   "one with --messages-of NAME"
                                 : "name another machine";
}

std::vector<std::string> in_words(MachineModel const& machine, std::vector<std::string> sources) {
  for (std::string& source : sources)
    if (auto const words = machine.sources.find(source); words != machine.sources.end())
      source = words->second;
  return sources;
}

int ranks_at_limit(InjectionLimit const& limit, NodeShape const& node, MemoryKind memory, int ranks) {
  int const of_socket =
      memory == MemoryKind::host ? node.cores_per_socket : std::max(1, node.gpus_per_socket);
  return limit.per_socket ? std::min(ranks, of_socket) : ranks;
}

double join_injection(double ranks, double all, double own, double p) {
  double const top = std::max(ranks, all);
  if (std::isinf(p) || top <= 0) return top;
  double const sum = std::pow(ranks / top, p) + std::pow(all / top, p) - std::pow(own / top, p);
  return std::max(ranks, top * std::pow(std::max(sum, 0.0), 1 / p));
}

namespace {

MessagePrice price_alone(CostTables const& tables, NodeShape const& node, MessagePattern const& pattern) {
  check(pattern);
  MessageCosts const* const costs = tables.find(pattern.span, pattern.memory);
  if (costs == nullptr) throw_no_data(tables, pattern.span, pattern.memory);
  MessagePiece const& piece = costs->piece(pattern.bytes);
  double const behind = pattern.messages - 1.0;
  MessagePrice price;
  price.protocol = piece.protocol;
  price.transfer = piece.transfer;
  price.first = piece.line.at(pattern.bytes);
  price.following = behind > 0 ? behind * following_seconds(tables, *costs, pattern.bytes) : 0.0;
  price.queue = costs->queue_search * pattern.messages * behind / 2;
  price.seconds = price.first + price.following + price.queue;
  price.sources.push_back(costs->source);
  if (behind > 0 && costs->following.empty())
    price.notes.emplace_back(
        "several messages of a rank were not measured: they follow each other as their transfer lets them");
  int const there = pattern.memory == MemoryKind::host ? node.cores() : node.gpus();
  if (pattern.active_ranks > there)
    price.notes.push_back(fmt::format("{} active ranks on nodes of {} {}", pattern.active_ranks, there,
                                      pattern.memory == MemoryKind::host ? "cores" : "GPUs"));
  if (pattern.span == MessageSpan::off_node) {
    add_injection(tables, node, pattern, price);
  } else if (pattern.active_ranks > 1) {
    price.notes.emplace_back("several active ranks inside a node were not measured: priced as if alone");
  }
  return price;
}

// The largest size below that of the pattern at which other values begin to hold.
double boundary_below(CostTables const& tables, MessagePattern const& pattern) {
  double found = 0;
  auto const look = [&](auto const& pieces) {
    for (auto const& piece : pieces)
      if (piece.up_to < pattern.bytes) found = std::max(found, piece.up_to);
  };
  MessageCosts const* const costs = tables.find(pattern.span, pattern.memory);
  look(costs->pieces);
  if (pattern.messages > 1) look(costs->following);
  InjectionCosts const* const cards = tables.find(pattern.memory);
  if (pattern.span == MessageSpan::off_node && cards != nullptr) look(cards->limits);
  return found;
}

}  // namespace

MessagePrice price(CostTables const& tables, NodeShape const& node, MessagePattern const& pattern) {
  MessagePrice price = price_alone(tables, node, pattern);
  constexpr double clearly = 1.05;
  double const boundary = boundary_below(tables, pattern);
  if (boundary <= 0) return price;
  MessagePattern smaller = pattern;
  smaller.bytes = boundary;
  if (double const seconds = price_alone(tables, node, smaller).seconds; seconds > clearly * price.seconds)
    price.notes.push_back(
        fmt::format("smaller messages are priced higher: {:.4g} us at {:.0f} bytes, above which another "
                    "protocol or limit holds",
                    1e6 * seconds, boundary));
  return price;
}

MessagePrice price(MachineModel const& machine, MessagePattern const& pattern) {
  MessagePrice price = [&] {
    try {
      return hostless::price(machine.costs, machine.node, pattern);
    } catch (Error const& problem) {
      if (problem.code() != ErrorCode::bad_input) throw;
      throw Error(problem.code(), fmt::format("{}: {}", machine.name, problem.what()));
    }
  }();
  price.sources = in_words(machine, std::move(price.sources));
  return price;
}

}  // namespace hostless
