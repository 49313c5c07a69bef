#pragma once
// Symmetric memory is taken by all ranks together: whoever binds to it does it by this.

#include <memory>
#include <vector>

#include "hostless/transport/group.hpp"
#include "transport/stream/stream_setup.hpp"

namespace hostless::gpu {

/// offer(): what this rank wants; take(offers of all ranks): the memory. Collective; an error of one rank is
/// one of all.
template <class Offer, class Take>
std::shared_ptr<SymmetricMemory> take_symmetric_memory(Group& group, Offer const& offer, Take const& take) {
  SymmetricOffer mine;
  group.together([&] { mine = offer(); });
  std::vector<SymmetricOffer> const all = group.all_gather(mine);
  std::shared_ptr<SymmetricMemory> memory;
  group.together([&] { memory = take(all); });
  return memory;
}

}  // namespace hostless::gpu
