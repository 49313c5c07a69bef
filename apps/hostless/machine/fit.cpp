#include "hostless/model/fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/control_characters.hpp"
#include "base/file.hpp"
#include "file_names.hpp"
#include "hostless/base/error.hpp"
#include "machine/fit_shown.hpp"
#include "machine/machine_commands.hpp"
#include "model/json_file.hpp"
#include "numbers.hpp"
#include "standard_output.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

struct FitRequest {
  std::string machine, output, json, source, name;
  std::vector<std::string> files;
  double short_up_to = 0, eager_up_to = 0;
};

nlohmann::ordered_json errors_json(ModelErrors const& errors) {
  return {{"samples", errors.samples},
          {"median", errors.median},
          {"percentile_90", errors.tenth_worst},
          {"worst", errors.worst},
          {"bias", errors.bias}};
}

}  // namespace

nlohmann::ordered_json json_of(Fit const& fit, ModelErrors const& errors) {
  nlohmann::ordered_json pieces = nlohmann::ordered_json::array();
  for (PieceFit const& piece : fit.pieces)
    pieces.push_back({{"what", piece.what},
                      {"from_bytes", piece.from},
                      {"up_to_bytes", piece.up_to},
                      {"samples", piece.samples},
                      {"alpha_s", piece.line.alpha},
                      {"alpha_half_width_s", piece.half_width.alpha},
                      {"beta_s_per_byte", piece.line.beta},
                      {"beta_half_width_s_per_byte", piece.half_width.beta},
                      {"median_residual", piece.median_residual},
                      {"worst_residual", piece.worst_residual}});
  auto const size = [](std::optional<double> const& bytes) {
    return bytes ? nlohmann::ordered_json(*bytes) : nlohmann::ordered_json(nullptr);
  };
  return {{"version", 1},
          {"short_up_to_bytes", size(fit.short_up_to)},
          {"eager_up_to_bytes", size(fit.eager_up_to)},
          {"pieces", pieces},
          {"errors", errors_json(errors)}};
}

void check_text(char const* option, std::string const& text) {
  if (has_control_characters(text))
    throw Error(ErrorCode::usage,
                fmt::format("{} has control characters (it is for people). Leave them out.", option));
}

void write_fitted(std::string const& file, MachineModel const& machine, Unfit const& unfit) {
  std::string const text = to_json(machine);
  try {
    (void)parse_machine(text, file);
  } catch (JsonFault const& fault) {
    throw Error(unfit.code,
                fmt::format("what was fitted is no machine's, and nothing was written to {} ({}): {}. {}",
                            file, unfit.why, fault.problem(), unfit.what_to_do));
  }
  write_text(file, text);
}

void print_fit(Fit const& fit, ModelErrors const& errors) {
  if (fit.short_up_to || fit.eager_up_to)
    print("protocols: {}{}{} (where times jump, or as given)\n",
          fit.short_up_to ? fmt::format("short up to {:.0f} bytes", *fit.short_up_to) : "",
          fit.short_up_to && fit.eager_up_to ? ", " : "",
          fit.eager_up_to ? fmt::format("eager up to {:.0f} bytes, rendezvous above", *fit.eager_up_to) : "");

  for (PieceFit const& piece : fit.pieces)
    print(
        "{:<32} {:>8.0f} to {:<9.0f} {:8.4g} +- {:.2g} us + {:.4g} +- {:.2g} s/byte  residuals {:.1f} % "
        "median, {:.1f} % worst\n",
        piece.what, piece.from, piece.up_to, 1e6 * piece.line.alpha, 1e6 * piece.half_width.alpha,
        piece.line.beta, piece.half_width.beta, 100 * piece.median_residual, 100 * piece.worst_residual);
  for (InjectionCosts const& costs : fit.tables.injection)
    for (InjectionLimit const& limit : costs.limits)
      print("injection {:<22} up to {:<9.4g} {:.4g} s/byte of a {}, sharpness {:g}\n", name(costs.memory),
            limit.up_to, limit.seconds_per_byte, limit.per_socket ? "socket" : "node", costs.sharpness);
  if (errors.samples > 0)
    print("prices of the {} measured messages: {:.1f} % off in the median, {:.1f} % at the 90th percentile\n",
          errors.samples, 100 * errors.median, 100 * errors.tenth_worst);
}

namespace {

int fit(FitRequest const& o) {
  MachineModel machine = load_machine(o.machine);
  Measurements measurements;
  constexpr std::int64_t most = std::int64_t{1} << 30;
  for (std::string const& file : o.files) read_measurements(read_whole_file(file, most), file, measurements);
  FitOptions options;
  options.node = machine.node;
  options.source = "fit";
  if (o.short_up_to > 0) options.short_up_to = o.short_up_to;
  if (o.eager_up_to > 0) options.eager_up_to = o.eager_up_to;
  Fit const found = fit_machine(measurements, options);
  ModelErrors const errors = errors_of(found.tables, machine.node, measurements.messages);
  if (!o.json.empty()) write_text(o.json, json_text(json_of(found, errors)));
  if (o.json != "-" && o.output != "-") print_fit(found, errors);
  if (o.output.empty()) return 0;
  machine.costs = found.tables;
  machine.sources["fit"] =
      o.source.empty() ? fmt::format("fitted by 'hostless machine fit' on {}", fmt::join(o.files, ", "))
                       : o.source;
  if (!o.name.empty()) machine.name = o.name;
  write_fitted(o.output, machine,
               {ErrorCode::bad_input, "times in other units than seconds, or too few sizes?",
                "Look at the measurements."});
  return 0;
}

}  // namespace

void add_machine_fit(CLI::App& machine, std::function<int()>& work) {
  auto o = std::make_shared<FitRequest>();
  CLI::App* c = machine.add_subcommand("fit", "Find what messages and copies cost from measured times");
  c->add_option("files", o->files, "Measurements, comma-separated values")->required();
  c->add_option("--machine", o->machine, "A name of `machine list`, or a file: the node that was measured")
      ->required();
  c->add_option("--short-up-to", o->short_up_to, "Bytes of the largest short message; else found")
      ->check(real_number(false));
  c->add_option("--eager-up-to", o->eager_up_to, "Bytes of the largest eager message; else found")
      ->check(real_number(false));
  CLI::Option* const output =
      c->add_option("--output", o->output,
                    "Write the machine's file with the costs that were found; - for standard output");
  c->add_option("--name", o->name, "Of the machine in that file")->needs(output);
  c->add_option("--source", o->source, "What was measured, in words, for that file")->needs(output);
  c->add_option("--json", o->json,
                "Write the fit with residuals and intervals as JSON; - for standard output");
  c->callback([o, &work] {
    work = [o] {
      check_text("--name", o->name);
      check_text("--source", o->source);
      std::vector<NamedFile> read;
      for (std::string const& file : o->files) read.push_back({"the measurements", file});
      check_names({{"--output", o->output}, {"--json", o->json}}, read);
      return fit(*o);
    };
  });
}

}  // namespace hostless
