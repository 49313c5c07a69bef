#pragma once
// Halos of parts, from the memory of other GPUs: on a stream, after what that GPU has done before.

#include <cstdint>
#include <vector>

#include "device/memory.hpp"

namespace hostless::gpu {

/// Bytes in a row, whole times 16, aligned so.
struct HaloCopy {
  void const* from;
  void* to;
  std::int64_t bytes;
};

/// By one kernel of the GPU in use, which must reach the other's memory.
void copy_halos(std::vector<HaloCopy> const& copies, Stream const& stream);
/// By the runtime's copies.
void queue_halos(std::vector<HaloCopy> const& copies, Stream const& stream);

}  // namespace hostless::gpu
