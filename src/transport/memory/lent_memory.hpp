#pragma once
// Memory that others store to: what must be said of it. Both sides of the loader include it.

#include <cstdint>

namespace hostless::gpu {

/// An array that others store to: its address, and what other processes open.
struct LentMemory {
  void* address = nullptr;
  unsigned char handle[64] = {};
  std::int64_t offset = 0;  ///< bytes from what the handle opens to `address`
};

}  // namespace hostless::gpu
