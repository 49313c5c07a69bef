// The command line: one file a subcommand. Exit codes: 0 converged (or done), 1 not converged, 2 usage, 3 bad
// input, 4 environment, peer_lost or aborted.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <new>

#include "commands.hpp"
#include "hostless/base/environment.hpp"
#include "hostless/base/error.hpp"
#include "hostless/transport/launcher.hpp"
#include "hostless/transport/mpi.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Sparse symmetric positive definite solvers for one core or a cluster", "hostless"};
  app.set_version_flag("--version", "hostless " HOSTLESS_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 converged or done, 1 not converged, 2 usage, 3 bad input, 4 environment, peer lost or "
      "aborted.");
  std::function<int()> work;
  hostless::Arguments const arguments(argv, argv + argc);
  hostless::add_solve(app, arguments, work);
  hostless::add_bench(app, arguments, work);
  hostless::add_generate(app, work);
  hostless::add_plan(app, work);
  hostless::add_info(app, work);
  hostless::add_doctor(app, work);
  hostless::add_report(app, work);
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    std::string chosen;
    for (CLI::App const* at = &app; !at->get_subcommands().empty();) {
      at = at->get_subcommands()[0];
      chosen += at->get_name() + " ";
    }
    fmt::print(stderr, "hostless: {} (see hostless {}--help).\n", e.what(), chosen);
    return 2;
  }
  int code = 0;
  try {
    if (!hostless::started_by_mpi()) hostless::check_environment();  // there it is told once, by rank 0
    return work();
  } catch (hostless::Reported const& e) {
    code = e.exit_code;  // rank 0 has said it
  } catch (hostless::Error const& e) {
    fmt::print(stderr, "hostless: {}\n", e.what());
    code = e.exit_code();
  } catch (std::bad_alloc const&) {
    fmt::print(stderr,
               "hostless: out of memory (the problem does not fit). Use more ranks or a smaller problem.\n");
    code = 4;
  } catch (std::exception const& e) {
    fmt::print(stderr, "hostless: {}\n", e.what());
    code = 4;
  }
  if (hostless::started_by_mpi() || hostless::started_by_launcher())
    hostless::leave_process(code);  // see there
  return code;
}
