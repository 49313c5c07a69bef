#pragma once

#include <string>
#include <vector>

#include "hostless/transport/transport.hpp"

namespace hostless::test {

/// What a queue promises, on each rank of any transport: `run` returns what was wrong.
struct QueueCase {
  char const* name;
  int ranks;          ///< 0: any number
  bool breaks_world;  ///< ranks that are processes leave without order afterwards
  std::string (*run)(Transport& transport);
  bool in_groups = true;  ///< also of queues that move all between two ranks at once
};
std::vector<QueueCase> const& queue_cases();

}  // namespace hostless::test
