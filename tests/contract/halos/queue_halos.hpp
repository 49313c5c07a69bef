#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "hostless/queue/queue.hpp"
#include "hostless/transport/group.hpp"

namespace hostless::test {

/// Enqueues what it is given, or records and launches it: how often that is executed in the end.
using EnqueueSteps = std::function<int(std::function<void()> const& steps)>;

/// Halos of random grids on the ranks of a communicator: 2 and 3 axes, widths 1 to 3, fields of all kinds, gathers and
/// scatters one after the other, against all ranks' arrays as global indices have them. What was wrong.
std::string run_random_halos(Communicator& communicator, Group& group, Queue& queue, std::uint64_t first_seed,
                             std::uint64_t count, EnqueueSteps const& by);

}  // namespace hostless::test
