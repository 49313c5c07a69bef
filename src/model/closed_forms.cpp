#include "hostless/model/closed_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hostless/base/error.hpp"
#include "hostless/model/price.hpp"

namespace hostless {
namespace {

[[noreturn]] void no_data(MachineModel const& machine, std::string const& what) {
  throw Error(ErrorCode::bad_input,
              fmt::format("{}: no data of {} (the closed forms need them). Measure them there, or {}.",
                          machine.name, what, name_another_machine(machine.costs)));
}

}  // namespace

char const* name(Strategy strategy) {
  constexpr std::array names = {"standard",     "three_step", "two_step_all",
                                "two_step_one", "split_md",   "split_dd"};
  return names[static_cast<std::size_t>(strategy)];
}

char const* name(Reading reading) { return reading == Reading::literal ? "literal" : "chosen"; }

ExchangeSymbols ExchangeSymbols::even(double messages, double bytes, double nodes, double kept,
                                      NodeShape const& node) {
  double const gpus = node.gpus();
  return {messages * bytes / gpus,
          messages * bytes,
          messages * bytes / nodes,
          nodes,
          messages / nodes,
          std::ceil(messages / gpus),
          nodes,
          kept};
}

ClosedForms::ClosedForms(MachineModel const& machine)
    : tables_(machine.for_closed_forms()), node_(machine.node) {
  for (MemoryKind memory : all_memory_kinds)
    for (MessageSpan span : all_spans)
      if (tables_.find(span, memory) == nullptr)
        no_data(machine, fmt::format("{} messages of {} memory", name(span), name(memory)));
  for (CopyDirection direction : {CopyDirection::host_to_device, CopyDirection::device_to_host})
    for (int processes : {1, 4})
      if (tables_.find(direction, processes) == nullptr)
        no_data(machine, fmt::format("copies {} by {} processes", name(direction), processes));
  InjectionCosts const* const injection = tables_.find(MemoryKind::host);
  if (injection == nullptr) no_data(machine, "the injection of host memory");
  injection_ = injection->limits.front().seconds_per_byte;
  for (MessagePiece const& piece : tables_.find(MessageSpan::off_node, MemoryKind::host)->pieces)
    if (piece.protocol != Protocol::rendezvous && std::isfinite(piece.up_to)) message_cap_ = piece.up_to;
  if (message_cap_ <= 0) no_data(machine, "the size at which rendezvous begins");
}

Line ClosedForms::line(MessageSpan span, MemoryKind memory, double message) const {
  return tables_.find(span, memory)->piece(message).line;
}

double ClosedForms::on_node(MemoryKind memory, double s) const {
  double const gps = node_.gpus_per_socket;
  double const there = line(MessageSpan::on_socket, memory, s).at(s),
               across = line(MessageSpan::on_node, memory, s).at(s);
  return (gps - 1) * there + (node_.sockets - 1) * gps * across;
}

double ClosedForms::on_split(double pps, double ppg, double message) const {
  double const count = std::max(1.0, pps / ppg);
  double const there = line(MessageSpan::on_socket, MemoryKind::host, message).at(message);
  double const across = line(MessageSpan::on_node, MemoryKind::host, message).at(message);
  return (count - 1) * there + (node_.sockets - 1) * count * across;
}

double ClosedForms::off_node(double m, double s, double s_node, double message) const {
  Line const line = this->line(MessageSpan::off_node, MemoryKind::host, message);
  return line.alpha * m + std::max(s_node * injection_, s * line.beta);
}

double ClosedForms::off_node_device(double m, double s, double message) const {
  Line const line = this->line(MessageSpan::off_node, MemoryKind::gpu, message);
  return line.alpha * m + s * line.beta;
}

double ClosedForms::copies(double s_send, double s_recv, int processes, Reading reading) const {
  Line const in = tables_.find(CopyDirection::host_to_device, processes)->line,
             out = tables_.find(CopyDirection::device_to_host, processes)->line;
  return reading == Reading::literal ? in.at(s_send) + out.at(s_recv) : out.at(s_send) + in.at(s_recv);
}

double ClosedForms::off(bool staged, double m, double s, double s_node, double message) const {
  return staged ? off_node(m, s, s_node, message) : off_node_device(m, s, message);
}

ClosedForm ClosedForms::standard(bool staged, Reading reading, ExchangeSymbols const& x) const {
  ClosedForm form{Strategy::standard, staged, reading, 0, 0, 0};
  form.off_node = off(staged, x.m_proc, x.s_proc, x.s_node, x.s_proc / x.m_proc);
  if (staged && reading == Reading::chosen) form.copies = copies(x.s_proc, x.s_proc, 1, reading);
  return form;
}

ClosedForm ClosedForms::three_step(bool staged, Reading reading, ExchangeSymbols const& x) const {
  ClosedForm form{Strategy::three_step, staged, reading, 0, 0, 0};
  MemoryKind const memory = staged ? MemoryKind::host : MemoryKind::gpu;
  bool const literal = reading == Reading::literal;
  double const gpus = node_.gpus(), paired = std::ceil(x.m_node / gpus), between = x.kept * x.s_node_to_node;
  form.off_node = literal ? off(staged, x.m_node_to_node, between, x.kept * x.s_node, between)
                          : off(staged, paired, paired * between, x.kept * x.s_node, between);
  form.on_node = 2 * (literal ? on_node(memory, between) : paired * on_node(memory, between / gpus));
  if (staged) form.copies = copies(x.kept * x.s_proc, literal ? between : x.kept * x.s_proc, 1, reading);
  return form;
}

ClosedForm ClosedForms::two_step(Strategy strategy, bool staged, Reading reading,
                                 ExchangeSymbols const& x) const {
  ClosedForm form{strategy, staged, reading, 0, 0, 0};
  MemoryKind const memory = staged ? MemoryKind::host : MemoryKind::gpu;
  bool const literal = reading == Reading::literal, one = strategy == Strategy::two_step_one;
  double const gpus = node_.gpus(), s = x.kept * x.s_proc;
  double const m = one ? std::ceil(x.m_node / gpus) : x.m_proc_to_node;
  form.off_node = off(staged, m, s, x.kept * x.s_node, s / m);
  if (literal) form.on_node = on_node(memory, s);
  if (!literal && !one) form.on_node = on_node(memory, s / gpus);
  if (staged) form.copies = copies(s, literal ? x.kept * x.s_node_to_node : s, 1, reading);
  return form;
}

ClosedForm ClosedForms::split(Strategy strategy, Reading reading, ExchangeSymbols const& x) const {
  ClosedForm form{strategy, true, reading, 0, 0, 0};
  bool const literal = reading == Reading::literal;
  int const ppg = strategy == Strategy::split_md ? 1 : 4;
  double const ppn = node_.cores(), s_node = x.kept * x.s_node, s_proc = x.kept * x.s_proc,
               between = x.kept * x.s_node_to_node;
  if (literal) {
    form.off_node = off_node(x.m_proc_to_node, s_node / ppn, s_node, s_node / ppn / x.m_proc_to_node);
    form.on_node = 2 * on_split(node_.cores_per_socket, ppg, s_node);
    form.copies = copies(s_proc, between, ppg, reading);
    return form;
  }
  // Algorithm 1: one piece a node, or pieces of the cap, which grows until every process has one.
  double const cap = std::max(message_cap_, std::ceil(s_node / ppn));
  double const pieces = between <= message_cap_ ? x.m_node : x.m_node * std::ceil(between / cap);
  double const active = std::min(pieces, ppn), each = std::ceil(pieces / ppn), size = s_node / pieces;
  form.off_node = off_node(each, each * size, s_node, size);
  form.on_node = 2 * on_split(active / node_.sockets, ppg, s_proc / active);
  form.copies = copies(s_proc, s_proc, ppg, reading);
  return form;
}

ClosedForm ClosedForms::of(Strategy strategy, bool staged, Reading reading,
                           ExchangeSymbols const& symbols) const {
  switch (strategy) {
    case Strategy::standard:
      return standard(staged, reading, symbols);
    case Strategy::three_step:
      return three_step(staged, reading, symbols);
    case Strategy::two_step_all:
    case Strategy::two_step_one:
      return two_step(strategy, staged, reading, symbols);
    case Strategy::split_md:
    case Strategy::split_dd:
      break;
  }
  if (!staged)
    throw Error(
        ErrorCode::usage,
        fmt::format("{} without the host (table 6 has no such form). Ask for it staged.", name(strategy)));
  return split(strategy, reading, symbols);
}

std::vector<ClosedForm> ClosedForms::table(Reading reading, ExchangeSymbols const& symbols) const {
  std::vector<ClosedForm> all;
  for (Strategy strategy : all_strategies)
    for (bool staged : {true, false})
      if (staged || strategy < Strategy::split_md) all.push_back(of(strategy, staged, reading, symbols));
  return all;
}

}  // namespace hostless
