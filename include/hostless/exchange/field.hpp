#pragma once

#include <cstddef>

namespace hostless {

/// One array of this rank's that takes part in an exchange, in host memory that outlives it. An item is
/// `item_bytes` bytes, whatever they mean: k values of a row are one item of k values.
struct Field {
  void const* send = nullptr;  ///< owned item i of the plan at send + i * item_bytes; only read
  /// Ghost g at receive + g * item_bytes. Equal to `send` where the plan is of one array
  /// (ExchangePlan::receive is 0): then item i lies at vector_offset(i) * item_bytes.
  void* receive = nullptr;
  std::size_t item_bytes = sizeof(double);

  /// Two arrays: [owned] and [ghosts]; they may be pieces of one, but may not overlap.
  static Field apart(void const* owned, void* ghosts, std::size_t item_bytes) {
    return {owned, ghosts, item_bytes};
  }
  /// One array laid out by rising owner, [ghosts of lower ranks | owned | the other ghosts].
  static Field around(void* first_owned, std::size_t item_bytes) {
    return {first_owned, first_owned, item_bytes};
  }
};

}  // namespace hostless
