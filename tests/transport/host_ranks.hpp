#pragma once
// Ranks of every transport that cmake/Transports.cmake lists, for programs of tests. Ranks that are
// processes are the same program again, started as
//   PROGRAM --as-rank <transport> <words>...

#include <functional>
#include <string>
#include <vector>

#include "transport/host_transport.hpp"

namespace hostless::test {

/// All that the list names, those of tests/ too.
std::vector<HostTransport> const& tested_transports();
HostTransport const& tested_transport(std::string const& name);
std::vector<std::string> names_with_threads();    ///< whose ranks are threads of this process
std::vector<std::string> names_with_processes();  ///< the others

/// Every name with every number of ranks; called `<name>_<ranks>` by ranks_name.
using Ranks = std::tuple<std::string, int>;
std::vector<Ranks> with_ranks(std::vector<std::string> const& names, std::vector<int> const& ranks);
std::string name_of(Ranks const& ranks);

/// For SetUp. Skips the test, with the reason, where ranks of it cannot be started or say nothing of our
/// code; else prepares the environment that they inherit.
void need(HostTransport const& transport);

/// This program.
std::string own_path();

/// Starts this program as ranks with such words, and returns their exit code; they print where it prints.
int start_again(HostTransport const& transport, int ranks, std::vector<std::string> const& words);
/// In a rank that was started so: its end of the transport. Errors  environment  it is not of as many ranks
std::unique_ptr<Transport> open_with_all(HostTransport const& transport);

/// Leaves such a rank when all of them but `absent` have come here, so that each has told what it saw: a launcher may
/// end all as soon as one is gone. Those that do not come are waited for a minute.
[[noreturn]] void leave_together(int code, int absent = 0);

/// What a command printed and how it ended.
struct Printed {
  int status = -1;
  std::string output;
  double seconds = 0;
  /// How many ranks printed "kept NAME;".
  int kept(std::string const& name) const;
};

/// Runs `command` as ranks of the transport, under variables written as in a shell ("A=1 B=2 ").
Printed run_as_ranks(HostTransport const& transport, int ranks, std::vector<std::string> const& command,
                     std::string const& variables = "");

/// A rank that opens its transport and prints what `wrong` finds: the exit code of start_again, 0 where that
/// is nothing.
int rank_that_looks(HostTransport const& transport, std::function<std::string(Transport&)> const& wrong);

/// The `main` of a program of tests: a rank (as_rank), what starts ranks (run_as_ranks), or GoogleTest, where
/// it is a failure that a filter leaves nothing.
int main_of_ranks(int count, char** words,
                  int (*as_rank)(HostTransport const& transport, std::vector<std::string> const& words));

}  // namespace hostless::test
