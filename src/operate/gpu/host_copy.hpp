#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace hostless::gpu {

/// Of a GPU; the one in use stays so.
std::int64_t free_bytes(int device);
/// Bytes of the host in the memory of a GPU, for as long as somebody holds them. Up to `threads` threads
/// copy, each through pinned memory of its own: from pageable memory the driver copies by one thread, at a
/// third of what four move. Errors  environment  not enough memory there, or for pinned memory here
std::shared_ptr<void> copy_of_host(void const* from, std::size_t bytes, int device, int threads);

}  // namespace hostless::gpu
