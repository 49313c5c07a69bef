#pragma once

namespace hostless::gpu {

/// Threads of a block, of every kernel.
constexpr int block_threads = 512;

}  // namespace hostless::gpu
