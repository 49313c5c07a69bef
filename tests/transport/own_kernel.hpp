#pragma once
// What a user's kernel is called with that does nothing but exchange, and look at what comes.

#include <cstdint>

#include "hostless/exchange/kernel_view.hpp"

namespace hostless::test {

struct OwnKernelCall {
  kernel::KernelExchange exchange{};
  std::int64_t const* item_id = nullptr;   ///< [owned] numbers of items in the whole
  std::int64_t const* ghost_id = nullptr;  ///< [ghosts]
  std::uint64_t* send = nullptr;           ///< [owned items]; item i is of block i mod blocks
  std::uint64_t* receive = nullptr;        ///< where ghosts go, as KernelExchange says
  int owned = 0, first_step = 0, steps = 0;
  std::uint32_t* wrong = nullptr;  ///< words that were not what was sent
  std::uint32_t* done = nullptr;   ///< [blocks] steps
  int silent_rank = -1;            ///< whose blocks end before the last step
};

/// Queued on a stream of the vendor's; what the runtime says. In the GPU library of tests, by this name.
using QueueOwnKernel = int(OwnKernelCall const* call, void* stream);
constexpr char const* queue_own_kernel_name = "hostless_queue_own_kernel";

}  // namespace hostless::test
