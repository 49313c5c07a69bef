#include "base/processors.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

namespace hostless {

int processors_of_rank(int ranks, bool ranks_are_threads) {
  auto const online = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  cpu_set_t allowed;
  // It fails where the machine has more processors than the set: then nothing is known of limits.
  int const usable = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : online;
  return std::max(1, ranks_are_threads ? usable / ranks : std::min(usable, online / ranks));
}

}  // namespace hostless
