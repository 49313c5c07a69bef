#include "bench.hpp"

#include <CLI/CLI.hpp>

#include "hostless/transport/libraries.hpp"
#include "numbers.hpp"

namespace hostless {

void MeasureOptions::add(CLI::App& command) {
  command.add_option("--steps", protocol.steps, "Steps of a repeat, whose mean is one figure")
      ->capture_default_str()
      ->check(whole_number(1));
  command.add_option("--repeat", protocol.repeat, "Repeats, of which best, median and worst are told")
      ->capture_default_str()
      ->check(whole_number(1));
  command.add_option("--warm-up", protocol.warm_up, "Steps before the first repeat")
      ->capture_default_str()
      ->check(whole_number(0));
  command.add_option("--json", json, "Write the figures as JSON; - for standard output");
}

nlohmann::ordered_json bench_head(char const* what, Provenance const& provenance) {
  return {{"version", 1},
          {"program", "hostless " HOSTLESS_VERSION},
          {"bench", what},
          {"provenance", nlohmann::ordered_json::parse(to_json(provenance))}};
}

nlohmann::ordered_json bench_report(char const* what, Provenance provenance, Transport& transport) {
  provenance.libraries = transport_libraries();  // ranks have loaded it
  nlohmann::ordered_json report = bench_head(what, provenance);
  report["transport"] = transport.capabilities().transport;
  report["ranks"] = transport.group().size();
  return report;
}

void add_bench(CLI::App& app, Arguments const& arguments, std::function<int()>& work) {
  CLI::App* c = app.add_subcommand(
      "bench", "Time solves in every way, stencils, and messages, exchanges and sums alone; tables and JSON");
  c->require_subcommand(1);
  add_bench_solve(*c, arguments, work);
  add_bench_papers(*c, arguments, work);
  add_bench_messages(*c, arguments, work);
  add_bench_neighbor(*c, arguments, work);
  add_bench_life(*c, arguments, work);
  add_bench_stencil(*c, arguments, work);
}

}  // namespace hostless
