#pragma once

#include <cstdint>

#include "device/runtime.hpp"
#include "exchange/gpu/workbench.hpp"

namespace hostless::gpu {

/// Queues y = A b: a thread for each value of y, which adds up in the order of its row.
void queue_sparse_product(SparseProduct const& product, HOSTLESS_GPU(Stream_t) stream);

}  // namespace hostless::gpu
