#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "hostless/machine/report.hpp"
#include "hostless/transport/launcher.hpp"
#include "hostless/transport/mpi.hpp"
#include "hostless/transport/transport.hpp"
#include "numbers.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

Capabilities threads_capabilities() {
  Capabilities c;
  run_with_threads_transport(1, [&](Transport& t) { c = t.capabilities(); });
  return c;
}

void print_capabilities(Capabilities const& c) {
  fmt::print("  {:<10} {:<9} {:<9} {:<9} {:<11} {:<11} {:<9} {:<11}\n", c.transport, name(c.host),
             name(c.stream), name(c.graph), name(c.graph_while), name(c.kernel), name(c.gather),
             name(c.all_reduce));
  if (!c.note.empty()) fmt::print("             {}\n", c.note);
}

// Asked in a child of this command: an MPI library is loaded there, not here.
int doctor(double seconds, std::string const& json) {
  MachineReport const machine = report_machine(seconds);
  auto const plugins = mpi_plugins();
  Capabilities const here[] = {threads_capabilities(), processes_capabilities()};
  if (json != "-") {
    fmt::print("hostless {}\n{}\n", HOSTLESS_VERSION, to_text(machine));
    fmt::print("transports   host      stream    graph     graph WHILE persistent  gather    all-reduce\n");
    for (Capabilities const& c : here) print_capabilities(c);
    for (MpiPlugin const& p : plugins) {
      if (p.problem.empty()) {
        fmt::print("  mpi        found: {} ({})\n             {}\n", name(p.vendor), p.library, p.path);
      } else {
        fmt::print("  mpi        missing: {}: {}\n", name(p.vendor), p.problem);
      }
    }
    fmt::print(
        "  devices    none: this version runs on processors only (CUDA and HIP runs are not built yet)\n");
  }
  if (!json.empty()) {
    nlohmann::ordered_json j;
    j["version"] = 1;
    j["program"] = "hostless " HOSTLESS_VERSION;
    j["machine"] = nlohmann::ordered_json::parse(to_json(machine));
    for (Capabilities const& c : here) {
      j["transports"][c.transport] = {{"host", name(c.host)},
                                      {"stream", name(c.stream)},
                                      {"graph", name(c.graph)},
                                      {"graph_while", name(c.graph_while)},
                                      {"persistent", name(c.kernel)},
                                      {"gather", name(c.gather)},
                                      {"all_reduce", name(c.all_reduce)},
                                      {"note", c.note}};
    }
    for (MpiPlugin const& p : plugins) {
      j["mpi"].push_back(
          {{"vendor", name(p.vendor)}, {"path", p.path}, {"library", p.library}, {"problem", p.problem}});
    }
    write_text(json, j.dump(1) + "\n");
  }
  return 0;
}

}  // namespace

void add_doctor(CLI::App& app, std::function<int()>& work) {
  auto seconds = std::make_shared<double>(0.5);
  auto json = std::make_shared<std::string>();
  CLI::App* c = app.add_subcommand(
      "doctor", "Describe this machine: cores, bandwidth, transports, and what is missing");
  c->add_option("--seconds", *seconds, "Time of each bandwidth measurement")
      ->capture_default_str()
      ->check(real_number(false));
  c->add_option("--json", *json, "Write it as JSON; - for standard output");
  c->callback([=, &work] { work = [=] { return doctor(*seconds, *json); }; });
}

}  // namespace hostless
