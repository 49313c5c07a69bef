#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hostless/transport/transport.hpp"

namespace hostless {

/// Copies of a command on this machine, one a rank, without mpirun.
struct Launch {
  int ranks = 1;
  std::vector<std::string> command;  ///< program (searched in PATH) and arguments
  double time_limit_s = 0.0;         ///< then all ranks are ended; 0: none
  double grace_s = 5.0;              ///< after a rank failed, the others have so long to end by themselves
};

/// Starts the ranks and waits for all of them. Each finds its number in HOSTLESS_RANK, their number in
/// HOSTLESS_SIZE and the folder where they meet in HOSTLESS_RENDEZVOUS; the folder lives as long as the call.
/// Rank 0 has this process's standard streams; what the others write is passed on line by line, and they read
/// nothing. When one fails, the others get `grace_s` and are then ended. SIGINT, SIGTERM, SIGHUP and SIGXCPU are
/// passed on while the call runs. Dies this process, the kernel ends the ranks.
///
/// Returns 0 when all ranks did; 4 when the first that failed died by a signal, or at the time limit; else
/// the first code that is not 0, where 4 ("a peer is lost" among others) gives way to the code of the rank
/// that was the cause, and 1 (a result that is none: nobody has failed) to any other. Errors  usage        ranks below 1, or no command;
///         environment  the command cannot be started, or no folder can be made in TMPDIR
int launch(Launch const& launch);

/// True in a process that `launch` started.
bool started_by_launcher();

/// The set-up collectives of the processes that `launch` started, over one socket between each two. A process
/// that ends or is killed is noticed at once. Collective: every rank opens it, once. The rendezvous is used
/// up by it. Errors  usage        not started by the launcher, or its variables make no sense;
///         environment  no socket can be made (too many open files, for example);
///         peer_lost    a rank did not come before the deadline
std::unique_ptr<Group> open_socket_group();

/// The `processes` transport: set-up as open_socket_group, messages through memory that the processes share.
/// Collective; errors as open_socket_group.
std::unique_ptr<Transport> open_processes_transport();

/// What that transport can do, without opening it.
Capabilities processes_capabilities();

}  // namespace hostless
