#pragma once
// Random legal programs of several ranks whose queues move messages in groups: what two ranks have between them is
// matched by one call on either side and waited for as a whole, in steps that all ranks take in one order. Some are
// recorded and launched again.

#include <string>

#include "gpu_queue_home.hpp"
#include "queue_programs.hpp"

namespace hostless::test {

/// As run_random_programs. The home is that of GPUs by groups.
std::string run_group_programs(Communicator& communicator, Group& group, GpuQueueHome& home,
                               Seeds const& seeds, std::string const& how);

}  // namespace hostless::test
