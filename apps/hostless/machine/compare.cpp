// `hostless machine compare`: what the same messages cost on several machines.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "hostless/base/error.hpp"
#include "hostless/model/price.hpp"
#include "machine/figure_fields.hpp"
#include "machine/machine_commands.hpp"
#include "pictures/python_command.hpp"
#include "standard_output.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;

struct CompareRequest {
  std::vector<std::string> machines;
  std::string json, plot;
};

constexpr double shown_sizes[] = {8, 1024, 65536, 1 << 20};

std::optional<double> seconds_of(MachineModel const& machine, MessagePattern const& pattern) {
  if (machine.costs.find(pattern.span, pattern.memory) == nullptr) return {};
  return price(machine, pattern).seconds;
}

Json row_of(std::vector<MachineModel> const& machines, MessagePattern const& pattern) {
  Json row = {{"locality", name(pattern.span)},
              {"memory", name(pattern.memory)},
              {"bytes", pattern.bytes},
              {"seconds", Json::array()}};
  bool any = false;
  for (MachineModel const& machine : machines) {
    auto const seconds = seconds_of(machine, pattern);
    row["seconds"].push_back(seconds ? Json(*seconds) : Json(nullptr));
    any = any || seconds;
  }
  return any ? row : Json();
}

Json rows_of(std::vector<MachineModel> const& machines) {
  Json rows = Json::array();
  for (MemoryKind memory : all_memory_kinds)
    for (MessageSpan span : all_spans)
      for (double bytes : shown_sizes)
        if (Json const row = row_of(machines, {span, memory, bytes, 1, 1}); !row.is_null())
          rows.push_back(row);
  return rows;
}

Figure picture_of(std::vector<MachineModel> const& machines) {
  Figure figure{"compare", "one message on several machines", {}};
  for (MemoryKind memory : all_memory_kinds)
    for (MessageSpan span : all_spans) {
      FigureField field{fmt::format("{}, {} memory", name(span), name(memory)), "bytes", "seconds", {}};
      for (MachineModel const& machine : machines) {
        FigureLine line{machine.name, {}, {}, false, {}};
        for (double bytes = 1; bytes <= 1 << 24; bytes *= 2)
          if (auto const seconds = seconds_of(machine, {span, memory, bytes, 1, 1}))
            line.x.push_back(bytes), line.y.push_back(*seconds);
        if (!line.x.empty()) field.lines.push_back(line);
      }
      if (!field.lines.empty()) figure.fields.push_back(field);
    }
  return figure;
}

int compare(CompareRequest const& o) {
  std::vector<MachineModel> machines;
  for (std::string const& name : o.machines) machines.push_back(load_machine(name));
  Json const rows = rows_of(machines);
  if (rows.empty())
    throw Error(ErrorCode::bad_input,
                "none of the machines has data of messages (there is nothing to compare). Name others.");
  if (!o.json.empty()) {
    Json names = Json::array();
    for (MachineModel const& machine : machines) names.push_back(machine.name);
    write_text(o.json, json_text({{"version", 1}, {"machines", names}, {"messages", rows}}));
  }
  if (!o.plot.empty()) draw_picture(json_text(json_of(picture_of(machines))), o.plot);
  if (o.json == "-") return 0;
  print("{:<26}", "one message, us");
  for (MachineModel const& machine : machines) print(" {:>18}", machine.name.substr(0, 18));
  print("\n");
  for (Json const& row : rows) {
    print("{:<9} {:<4} {:>8.0f} B  ", row["locality"].get<std::string>(), row["memory"].get<std::string>(),
          row["bytes"].get<double>());
    for (Json const& seconds : row["seconds"])
      print(" {:>18}", seconds.is_null() ? "no data" : fmt::format("{:.2f}", 1e6 * seconds.get<double>()));
    print("\n");
  }
  return 0;
}

}  // namespace

void add_machine_compare(CLI::App& machine, std::function<int()>& work) {
  auto o = std::make_shared<CompareRequest>();
  CLI::App* c = machine.add_subcommand("compare", "What one message costs on several machines, side by side");
  c->add_option("machines", o->machines, "Names of `machine list`, or files")->required()->expected(2, 16);
  c->add_option("--plot", o->plot, "Draw it, .svg; needs the Python package with matplotlib");
  c->add_option("--json", o->json, "Write it as JSON; - for standard output");
  c->callback([o, &work] { work = [o] { return compare(*o); }; });
}

}  // namespace hostless
