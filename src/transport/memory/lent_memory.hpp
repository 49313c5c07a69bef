#pragma once
// Memory that others store to: what must be said of it. Both sides of the loader include it.

#include <cstdint>

namespace hostless::gpu {

/// Where borrowers tell a lender that they have closed what they opened.
struct Borrowing {
  std::int32_t process = 0;  ///< 0: nowhere
  std::int32_t file = -1;    ///< of that process
  std::uint64_t key = 0;
};

/// An array that others store to: its address, and what other processes open.
struct LentMemory {
  void* address = nullptr;
  unsigned char handle[64] = {};
  std::int64_t offset = 0;  ///< bytes from what the handle opens to `address`
  Borrowing borrowing;      ///< by other processes
};

}  // namespace hostless::gpu
