#pragma once

#include <bitset>
#include <span>
#include <vector>

namespace hostless {

/// Processors (hardware threads) of a machine by the system's numbers.
using ProcessorSet = std::bitset<4096>;

/// Those that this thread, and every thread that it starts, may run on: affinity mask and container. Empty where
/// the system does not say, or numbers more than a set holds. Local.
ProcessorSet processors_of_thread();

/// How many threads each rank of a machine starts so that all processors that any of them may use are busy, each
/// with one thread: a processor goes to the rank with the fewest so far of those that may run there, the lowest of
/// these; processors with the fewest such ranks first. Whoever gets none starts one all the same.
///
/// of_ranks  [ranks of the machine] the processors of each
/// Returns [ranks]. Local.
std::vector<int> threads_on_all_processors(std::span<ProcessorSet const> of_ranks);

}  // namespace hostless
