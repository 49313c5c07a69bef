#pragma once
// The kernel by which a stream passes all messages of a halo.

#include "device/memory.hpp"
#include "queue/halo/halo_text.hpp"

namespace hostless::gpu {

/// is_dependent: launch_dependent.
void launch_halo(HOSTLESS_GPU(Stream_t) stream, bool is_dependent, queue::HaloPass const& pass);
/// On the GPU in use.
void load_halo_kernels();

}  // namespace hostless::gpu
