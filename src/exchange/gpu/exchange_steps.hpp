#pragma once

#include "device/runtime.hpp"
#include "hostless/exchange/kernel_view.hpp"

namespace hostless::gpu {

/// Blocks of `queue_exchange_steps` that a GPU holds at once, kernels of several ranks together: at most one a
/// multiprocessor.
int most_step_blocks(int device);
/// Queues one kernel that executes an exchange inside itself so many times, one after the other. 0 steps: the
/// kernel is loaded, and nothing moves.
void queue_exchange_steps(kernel::KernelExchange const& exchange, void const* send, void* receive, int steps,
                          HOSTLESS_GPU(Stream_t) stream);

}  // namespace hostless::gpu
