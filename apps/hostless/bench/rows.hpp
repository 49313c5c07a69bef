#pragma once
// What `bench pingpong`, `halo` and `allreduce` compare in one table: rows, each a transport with one of its
// faces. The list of them stands in rows.cpp, and nowhere else.

#include <string>

#include "messages.hpp"

namespace CLI {
class App;
}

namespace hostless {

/// --transports, whose words are checked when it is read, and --row-limit.
void add_rows(CLI::App& command, MessageOptions& o);

/// Before anything is started.
/// Errors  usage  under mpirun; options of GPUs without a row of theirs
void check_rows(MessageOptions const& o);

/// A start of this command for each row, one after the other, and one table and report of them all. A row
/// that cannot be is told with its reason, and counted.
///
/// Returns the largest exit code of rows that failed; where no row was measured, that of the last one that is
/// absent; else 0.
/// Errors  environment  the report cannot be written, or what a row prints can be kept nowhere
int time_rows(Timed what, MessageOptions const& o, CLI::App& command);

}  // namespace hostless
