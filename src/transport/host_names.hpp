#pragma once

#include <unistd.h>

#include <array>
#include <vector>

#include "hostless/transport/group.hpp"

namespace hostless {

using HostName = std::array<char, 256>;  ///< ends in 0

/// The name of each rank's machine. Collective; one all-gather.
inline std::vector<HostName> host_names(Group& group) {
  HostName host{};
  gethostname(host.data(), host.size() - 1);
  return group.all_gather(host);
}

}  // namespace hostless
