#include <CLI/CLI.hpp>

#include "commands.hpp"
#include "machine/machine_commands.hpp"

namespace hostless {

void add_machine(CLI::App& app, Arguments const& arguments, std::function<int()>& work) {
  CLI::App* c =
      app.add_subcommand("machine", "What messages and copies cost on a machine: files, prices, fits");
  c->require_subcommand(1);
  add_machine_list(*c, work);
  add_machine_show(*c, work);
  add_machine_price(*c, work);
  add_machine_halo(*c, work);
  add_machine_fit(*c, work);
  add_machine_measure(*c, arguments, work);
  add_machine_compare(*c, work);
  add_machine_forms(*c, work);
  add_machine_figures(*c, work);
}

}  // namespace hostless
