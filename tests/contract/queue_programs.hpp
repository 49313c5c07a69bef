#pragma once
// Random legal programs of several ranks over queues: the same text is drawn on every rank, each executes its
// part.
//
// Why none can deadlock: every start and wait has a time, a rank enqueues its own in the order of times, and
// each wait comes later than the starts of all sides. What a wait needs is then always earlier than itself.

#include <cstddef>
#include <cstdint>
#include <string>

#include "hostless/queue/queue.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless::test {

/// Programs of consecutive seeds.
struct Seeds {
  std::uint64_t first, count;
};

/// Those that a suite of programs of so many ranks runs: `otherwise` of them, from one million times the ranks on.
/// HOSTLESS_QUEUE_SEED is another first one, alone unless HOSTLESS_QUEUE_PROGRAMS says how many; without it that
/// is the number of programs of all `suites` together.
Seeds seeds_of(int ranks, std::uint64_t otherwise, std::uint64_t suites);

/// Executes them one after the other, on each rank of the group. Empty, and rank 0 has printed what was drawn; or
/// what was wrong on this rank: bytes, statuses, a wait that ended by its limit. Both have the seeds, and how one
/// runs again.
/// how  to run one, behind the variables
std::string run_random_programs(Communicator& communicator, Group& group, Seeds const& seeds,
                                std::string const& how);

}  // namespace hostless::test
