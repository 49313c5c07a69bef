// Figures 2.5, 2.6, 3.1, 4.2 and 4.3 of Lockhart et al. 2022, of any machine that has the data.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "hostless/base/error.hpp"
#include "hostless/model/exchange_symbols.hpp"
#include "hostless/solve/matrix.hpp"
#include "input.hpp"
#include "lists.hpp"
#include "machine/figure_fields.hpp"
#include "machine/forms_json.hpp"
#include "machine/machine_commands.hpp"
#include "pictures/python_command.hpp"
#include "setup_shown.hpp"
#include "standard_output.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;

struct FiguresRequest {
  InputOptions input;
  std::string machine, figure = "4.3", reading = "chosen", output, json, file;
  std::vector<int> gpus;
};

// Rows in blocks, as the paper's; one value of 8 bytes a ghost.
PatternPoint pattern_on(InputOptions const& input, int gpus, int per_node) {
  PatternPoint point{gpus, {}};
  run_on_threads(gpus, [&](Group& group) {
    auto const source = input.open(group, nullptr, 0, Symmetry::any);
    MatrixOptions options;
    options.partition = MatrixOptions::Partition::contiguous;
    PlannedMatrix const planned = plan_matrix(group, *source, options);
    if (group.rank() == 0) point.symbols = symbols_of(planned.patterns, NodeMap::blocks(gpus, per_node), 8);
  });
  return point;
}

std::vector<Figure> figures_of(FiguresRequest const& o, MachineModel const& machine, Json& json) {
  std::vector<Figure> all;
  if (o.figure == "2.5") all = {figure_of_localities(machine)};
  if (o.figure == "2.6") all = {figure_of_shared_volumes(machine)};
  if (o.figure == "3.1") all = {figure_of_copies(machine)};
  if (o.figure == "4.3")
    for (Reading reading : all_readings) all.push_back(figure_of_scenarios(machine, reading));
  if (o.figure != "4.2") return all;
  ClosedForms const forms(machine);  // no data is said before the work
  std::vector<PatternPoint> points;
  for (int gpus : o.gpus) {
    SetupShown shown(true);
    points.push_back(pattern_on(o.input, gpus, machine.node.gpus()));
    json["patterns"].push_back({{"gpus", gpus}, {"symbols", json_of(points.back().symbols)}});
  }
  for (Reading reading : all_readings)
    all.push_back(figure_of_pattern(machine, reading, o.input.describe(), points));
  return all;
}

int draw(FiguresRequest const& o) {
  MachineModel const machine = load_machine(o.machine);
  if (o.json.empty()) check_pictures(o.output);  // else nothing is computed in vain
  Json json = {{"version", 1}, {"machine", machine.name}, {"figure", o.figure}};
  if (o.figure == "4.2") json["matrix"] = o.input.describe();
  auto const figures = figures_of(o, machine, json);
  Figure const& drawn = figures.size() > 1 && o.reading == "chosen" ? figures[1] : figures[0];
  if (drawn.fields.empty())
    throw Error(
        ErrorCode::bad_input,
        fmt::format(
            "{}: nothing to draw in figure {} (no data, or nothing leaves a node). Name another machine, "
            "or more GPUs.",
            machine.name, o.figure));
  for (Figure const& figure : figures) json["pictures"].push_back(json_of(figure));
  if (!o.json.empty()) write_text(o.json, json_text(json));
  if (!o.output.empty()) {
    draw_picture(json_text(json_of(drawn)), o.output);
    if (o.json != "-") print("{}: figure {}, {}\n", o.output, o.figure, drawn.title);
  }
  return 0;
}

void check_request(FiguresRequest& o) {
  o.input.file = o.file;
  if (o.output.empty() && o.json.empty())
    throw Error(ErrorCode::usage, "neither --output nor --json (the figure goes nowhere). Give one of them.");
  if (!o.output.empty() && !o.output.ends_with(".svg"))
    throw Error(ErrorCode::usage,
                fmt::format("--output {} (pictures are SVG). Name a file that ends with .svg.", o.output));
  bool const pattern = o.figure == "4.2", given = o.input.generated() || !o.file.empty();
  if (!pattern && (given || !o.gpus.empty()))
    throw Error(
        ErrorCode::usage,
        fmt::format("a matrix or --gpus with figure {} is refused (only 4.2 is of a matrix). Drop them.",
                    o.figure));
  if (pattern) {
    o.input.check_given();
    if (o.gpus.empty())
      throw Error(
          ErrorCode::usage,
          "figure 4.2 without --gpus is refused (it shows times by their number). Give --gpus 8,16,32.");
  }
  check_names({{"--output", o.output}, {"--json", o.json}}, {{"the matrix", o.file}});
}

}  // namespace

void add_machine_figures(CLI::App& machine, std::function<int()>& work) {
  auto o = std::make_shared<FiguresRequest>();
  CLI::App* c = machine.add_subcommand(
      "figures", "Figures 2.5, 2.6, 3.1, 4.2 and 4.3 of Lockhart et al. 2022, of a machine");
  c->footer("Pictures need the Python package of hostless with matplotlib.");
  c->add_option("file", o->file, "Of figure 4.2: a Matrix Market file (plain or gz) or PETSc binary");
  c->add_option("--machine", o->machine, "A name of `machine list`, or a file")->required();
  c->add_option("--figure", o->figure, "2.5, 2.6, 3.1, 4.2 or 4.3")
      ->capture_default_str()
      ->check(one_of({"2.5", "2.6", "3.1", "4.2", "4.3"}));
  CLI::Option* const reading =
      c->add_option("--reading", o->reading,
                    "Of closed forms, for the picture of 4.2 or 4.3: literal or chosen")
          ->capture_default_str()
          ->check(one_of({"literal", "chosen"}));
  auto const before = c->get_options();
  o->input.add_problem(*c);
  std::vector<CLI::Option*> of_problems;
  for (CLI::Option* const option : c->get_options())
    if (std::find(before.begin(), before.end(), option) == before.end()) of_problems.push_back(option);
  c->add_option_function<std::string>(
      "--gpus", [o](std::string const& text) { o->gpus = numbers_in("--gpus", text, 1, most_workers); },
      "Of figure 4.2: numbers of GPUs, a rank each");
  reading->needs(c->add_option("--output", o->output, "The picture, .svg"));
  c->add_option("--json", o->json, "Write the lines, in both readings, as JSON; - for standard output");
  c->callback([o, reading, of_problems, &work] {
    work = [o, of_problems, by_reading = reading->count() > 0] {
      for (CLI::Option const* option : of_problems)
        if (o->figure != "4.2" && option->count() > 0)
          throw Error(ErrorCode::usage,
                      fmt::format("{} with figure {} is refused (only 4.2 is of a matrix). Drop it.",
                                  option->get_name(), o->figure));
      if (by_reading && !o->figure.starts_with("4."))
        throw Error(
            ErrorCode::usage,
            fmt::format("--reading with figure {} is refused (closed forms are in 4.2 and 4.3). Drop it.",
                        o->figure));
      check_request(*o);
      return draw(*o);
    };
  });
}

}  // namespace hostless
