#pragma once
// Starts the ranks of a job: threads of this process, processes of this machine, or those that mpirun has
// started.

#include <functional>
#include <string>

#include "commands.hpp"
#include "hostless/transport/transport.hpp"

namespace CLI {
class App;
}

namespace hostless {

struct RankOptions {
  int ranks = 0;          ///< 0: 1, or what mpirun has started
  std::string transport;  ///< empty: mpi under mpirun, else threads
  /// That has these options: its words are the same on all ranks of mpirun.
  CLI::App const* command = nullptr;

  /// shared  what the ranks share, for --help; alone: how many they are where no mpirun has started them
  void add(CLI::App& command, char const* shared = "the matrix", char const* alone = "1");
};

/// Runs `body` on every rank and returns the exit code (the largest of all ranks of this process). Errors are
/// printed once, by rank 0. For a transport of processes that are not there yet, starts this command again
/// under a launcher.
int run_ranks(RankOptions const& options, Arguments const& arguments,
              std::function<int(Transport&)> const& body);

}  // namespace hostless
