#include "ranks.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>

#include "base/counted.hpp"
#include "base/variable.hpp"
#include "child_command.hpp"
#include "hostless/base/environment.hpp"
#include "hostless/transport/composite.hpp"
#include "hostless/transport/launcher.hpp"
#include "hostless/transport/mpi.hpp"
#include "lists.hpp"
#include "numbers.hpp"
#include "options/equal_words.hpp"
#include "standard_output.hpp"

namespace hostless {
namespace {

// One rank's share of the job with errors turned into one message and one exit code. Errors that all ranks
// share
// (`together`) come with the same text everywhere: rank 0 prints it.
int guarded(Transport& transport, std::function<int(Transport&)> const& body) {
  try {
    return body(transport);
  } catch (Error const& e) {
    bool const mine = transport.group().rank() == 0 || e.code() == ErrorCode::peer_lost;
    if (mine) tell("hostless: {}\n", e.what());
    throw Reported{e.exit_code()};
  }
}

int run_threads(int ranks, std::function<int(Transport&)> const& body) {
  std::atomic<int> code{0};
  auto raise = [&](int mine) {
    int seen = code.load();
    while (mine > seen && !code.compare_exchange_weak(seen, mine)) {
    }
  };
  // The cause is thrown here when all have ended, not what it made the others say: a rank that has told its loss
  // leaves as one that has lost another, which no cause is.
  struct Told : Error {
    Told() : Error(ErrorCode::peer_lost, "a rank has told what it has lost") {}
  };
  try {
    run_with_threads_transport(ranks, [&](Transport& transport) {
      int const mine = body(transport);
      raise(mine);
      if (mine == 4) throw Told{};  // whoever it has lost is not waited for
    });
  } catch (Told const&) {
    throw Reported{4};
  }
  return code.load();
}

// This command again: the program itself, not what a PATH may find.
Arguments again(Arguments const& arguments) {
  Arguments command = arguments;
  if (std::string const self = this_program(); !self.empty()) command[0] = self;
  return command;
}

// A rank that is a process of its own, with its exit code.
int run_process(Transport& transport, int wanted, std::function<int(Transport&)> const& body) {
  if (wanted > 0 && wanted != transport.group().size()) {
    if (transport.group().rank() == 0) {
      tell(
          "hostless: --ranks {} among {} (they contradict each other). Drop "
          "--ranks.\n",
          wanted, counted(transport.group().size(), "process", "processes"));
    }
    throw Reported{2};
  }
  int const code = guarded(transport, [&](Transport& mine) {
    mine.group().together(check_environment);
    if (started_by_mpi() && mine.group().rank() == 0) tell_unknown_variables();
    return body(mine);
  });
  if (code == 4) leave_process(code);  // a lost peer would keep an orderly end waiting
  return code;
}

}  // namespace

void RankOptions::add(CLI::App& command, char const* shared, char const* alone) {
  this->command = &command;
  command
      .add_option("--ranks", ranks,
                  fmt::format("Ranks that share {} (default: {}, or those of mpirun)", shared, alone))
      ->check(whole_number(1));
  command
      .add_option(
          "--transport", transport,
          "threads (default), processes (of this machine, started here), mpi (default under mpirun; else "
          "starts mpirun) or composite (as mpi; ranks of a node share memory)")
      ->check(one_of({"threads", "processes", "mpi", "composite"}));
}

int run_ranks(RankOptions const& options, Arguments const& arguments,
              std::function<int(Transport&)> const& body) {
  bool const under_mpi = started_by_mpi(), launched = started_by_launcher();
  std::string const kind = !options.transport.empty() ? options.transport : under_mpi ? "mpi" : "threads";
  int const ranks = options.ranks > 0 ? options.ranks : 1;
  bool const of_mpi = kind == "mpi" || kind == "composite";
  if (under_mpi && !of_mpi) {
    throw Error(
        ErrorCode::usage,
        fmt::format("--transport {} under mpirun (every process would solve the whole). Drop mpirun.", kind));
  }
  if (!of_mpi && ranks > most_workers) {  // mpirun knows what its machines hold
    throw Error(
        ErrorCode::usage,
        fmt::format("--ranks {} on one machine (at most {} are started here). Use fewer, or mpirun on "
                    "more machines.",
                    ranks, most_workers));
  }
  if (kind == "threads") return run_threads(ranks, body);
  if (kind == "processes") {
    if (!launched) {
      Launch job;
      job.ranks = ranks;
      job.command = again(arguments);
      return launch(job);
    }
    auto const transport = open_processes_transport();
    return run_process(*transport, options.ranks, body);
  }
  if (!under_mpi) return run_mpirun(mpirun_command(usable_mpi_vendor(), ranks, again(arguments)));
  std::unique_ptr<Transport> transport = open_mpi_transport(require_mpi_vendor());
  if (options.command != nullptr) {
    int const refused = guarded(*transport, [&](Transport& mine) {
      require_equal_words(mine.group(), given_words(*options.command));
      return 0;
    });
    if (refused != 0) return refused;
  }
  if (kind == "composite") {
    int const refused = guarded(*transport, [](Transport& mine) {
      mine.group().together(check_environment);  // which opening asks, too, but each rank by itself
      return 0;
    });
    if (refused != 0) return refused;
    transport = open_composite_transport(std::move(transport));
  }
  return run_process(*transport, options.ranks, body);
}

}  // namespace hostless
