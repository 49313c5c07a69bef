#pragma once

namespace hostless {

/// Threads or processes that are started on this machine at most as ranks: more are a slip of the finger, and
/// bring a machine down before they fail.
constexpr int most_workers = 4096;

/// Processors that one of `ranks` ranks of this machine may keep busy: what the system lets this process use,
/// shared with the ranks that are threads of it, and no more than a rank's share of the machine. At least 1.
int processors_of_rank(int ranks, bool ranks_are_threads);

}  // namespace hostless
