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

namespace hostless::test {

struct Drawn {
  int messages = 0, collectives = 0, ready = 0, epochs = 0;
  std::size_t bytes = 0;
};

/// What was wrong on this rank, or empty. Counts what was drawn in `drawn`.
std::string run_random_program(Communicator& communicator, int rank, int ranks, std::uint64_t seed,
                               Drawn& drawn);

}  // namespace hostless::test
