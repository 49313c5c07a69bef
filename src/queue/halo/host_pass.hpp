#pragma once

#include <memory>

#include "queue/halo/halo_text.hpp"

namespace hostless::queue {

/// What a queue is to do, and the memory of its messages, which lives as long.
struct HaloJob {
  HaloPass pass;
  std::shared_ptr<std::byte> messages;
};

/// What a queue of the host does in the place of the kernel: the same bits, by lines where cells lie close together.
void pass_halo_by_host(HaloPass const& pass);

}  // namespace hostless::queue
