#include "machine/figure_fields.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.hpp"
#include "hostless/model/price.hpp"

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;

constexpr double largest = 1 << 20;

std::vector<double> sizes() {
  std::vector<double> all;
  for (double bytes = 1; bytes <= largest; bytes *= 2) all.push_back(bytes);
  return all;
}

std::string label_of(ClosedForm const& form) {
  constexpr std::array names = {"Standard", "3-Step", "2-Step All", "2-Step 1", "Split+MD", "Split+DD"};
  return fmt::format("{}{}", names[static_cast<std::size_t>(form.strategy)],
                     form.staged ? "" : ", device-aware");
}

// A line for each closed form; at each x the fastest but 2-Step 1 is marked.
void add_forms(FigureField& field, double x, std::vector<ClosedForm> const& forms) {
  auto const cost = [](ClosedForm const& form) {
    return form.strategy == Strategy::two_step_one ? 1e9 : form.seconds();
  };
  auto const fastest = std::min_element(forms.begin(), forms.end(),
                                        [&](auto const& a, auto const& b) { return cost(a) < cost(b); });
  field.lines.resize(forms.size());
  for (std::size_t k = 0; k < forms.size(); ++k) {
    FigureLine& line = field.lines[k];
    line.label = label_of(forms[k]);
    line.dashed = !forms[k].staged;
    line.x.push_back(x);
    line.y.push_back(forms[k].seconds());
    line.marked.push_back(&forms[k] == &*fastest);
  }
}

}  // namespace

Json json_of(Figure const& figure) {
  Json fields = Json::array();
  for (FigureField const& field : figure.fields) {
    Json lines = Json::array();
    for (FigureLine const& line : field.lines)
      lines.push_back({{"label", line.label},
                       {"dashed", line.dashed},
                       {"x", line.x},
                       {"y", line.y},
                       {"marked", line.marked}});
    fields.push_back(
        {{"title", field.title}, {"x_label", field.x_label}, {"y_label", field.y_label}, {"lines", lines}});
  }
  return {{"version", 1}, {"figure", figure.name}, {"title", figure.title}, {"fields", fields}};
}

Figure figure_of_localities(MachineModel const& machine) {
  Figure figure{"2.5", fmt::format("{}: one message", machine.name), {}};
  for (MemoryKind memory : all_memory_kinds) {
    FigureField field{fmt::format("{} memory", name(memory)), "bytes", "seconds", {}};
    for (MessageSpan span : all_spans) {
      if (machine.costs.find(span, memory) == nullptr) continue;
      FigureLine& line = field.lines.emplace_back();
      line.label = name(span);
      for (double bytes : sizes()) {
        line.x.push_back(bytes);
        line.y.push_back(price(machine, {span, memory, bytes, 1, 1}).seconds);
      }
    }
    if (!field.lines.empty()) figure.fields.push_back(std::move(field));
  }
  return figure;
}

Figure figure_of_shared_volumes(MachineModel const& machine) {
  Figure figure{"2.6", fmt::format("{}: a volume between two nodes, shared by ranks", machine.name), {}};
  for (MemoryKind memory : all_memory_kinds) {
    if (machine.costs.find(MessageSpan::off_node, memory) == nullptr) continue;
    FigureField field{fmt::format("{} memory", name(memory)), "bytes of all ranks", "seconds", {}};
    int const most = memory == MemoryKind::host ? machine.node.cores() : machine.node.gpus();
    for (int ranks = 1; ranks <= most; ranks = ranks < most && 2 * ranks > most ? most : 2 * ranks) {
      FigureLine& line = field.lines.emplace_back();
      line.label = counted(ranks, "rank");
      for (double bytes = 64; bytes <= 64 * largest; bytes *= 2) {
        line.x.push_back(bytes);
        line.y.push_back(price(machine, {MessageSpan::off_node, memory, bytes / ranks, 1, ranks}).seconds);
      }
    }
    for (std::size_t k = 0; k < field.lines[0].x.size(); ++k) {
      FigureLine* best = &field.lines[0];
      for (FigureLine& line : field.lines)
        if (line.y[k] < best->y[k]) best = &line;
      for (FigureLine& line : field.lines) line.marked.push_back(&line == best);
    }
    figure.fields.push_back(std::move(field));
  }
  return figure;
}

Figure figure_of_copies(MachineModel const& machine) {
  Figure figure{"3.1", fmt::format("{}: copies between GPU and host", machine.name), {}};
  FigureField field{"copies", "bytes", "seconds", {}};
  for (CopyCosts const& costs : machine.costs.copies) {
    FigureLine& line = field.lines.emplace_back();
    line.label =
        fmt::format("{}, {}", name(costs.direction), counted(costs.processes, "process", "processes"));
    line.dashed = costs.direction == CopyDirection::device_to_host;
    for (double bytes : sizes()) {
      line.x.push_back(bytes);
      line.y.push_back(costs.line.at(bytes));
    }
  }
  if (!field.lines.empty()) figure.fields.push_back(std::move(field));
  return figure;
}

Figure figure_of_scenarios(MachineModel const& machine, Reading reading) {
  ClosedForms const forms(machine);
  Figure figure{
      "4.3",
      fmt::format("{}: modelled time of a node's messages, {} reading", machine.name, name(reading)),
      {}};
  for (double nodes : {4.0, 16.0})
    for (double kept : {1.0, 0.75})
      for (double messages : {32.0, 256.0}) {
        FigureField field{fmt::format("{:.0f} messages to {:.0f} nodes{}", messages, nodes,
                                      kept < 1 ? ", 25 % duplicates removed" : ""),
                          "bytes of a message",
                          "seconds",
                          {}};
        for (double bytes : sizes())
          add_forms(field, bytes,
                    forms.table(reading, ExchangeSymbols::even(messages, bytes, nodes, kept, machine.node)));
        figure.fields.push_back(std::move(field));
      }
  return figure;
}

Figure figure_of_pattern(MachineModel const& machine, Reading reading, std::string const& matrix,
                         std::vector<PatternPoint> const& points) {
  ClosedForms const forms(machine);
  Figure figure{"4.2",
                fmt::format("{}: modelled time of the exchange of a product with {}, {} reading",
                            machine.name, matrix, name(reading)),
                {}};
  FigureField field{matrix, "GPUs", "seconds", {}};
  for (PatternPoint const& point : points)
    if (point.symbols.s_node > 0) add_forms(field, point.gpus, forms.table(reading, point.symbols));
  if (!field.lines.empty()) figure.fields.push_back(std::move(field));
  return figure;
}

}  // namespace hostless
