#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "hostless/base/host_device.hpp"
#include "hostless/queue/queue.hpp"

namespace hostless::queue {

template <class T>
HOSTLESS_HOST_DEVICE bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return value != value;
  else
    return false;
}

/// a (...) b. Integers wrap around, as MPI's do on every machine; a signed overflow would be undefined. A NaN is the
/// smallest and the largest, whichever rank has it, as NumPy's `minimum` and `maximum` say.
template <class T>
HOSTLESS_HOST_DEVICE T reduced(T a, T b, ReduceOperation operation) {
  switch (operation) {
    case ReduceOperation::sum:
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
      else
        return a + b;
    case ReduceOperation::product:
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      else
        return a * b;
    case ReduceOperation::minimum:
      return b >= a || is_nan(a) ? a : b;
    case ReduceOperation::maximum:
      return a >= b || is_nan(a) ? a : b;
  }
  return a;
}

/// total [count] = total (...) next, element by element.
void reduce(std::byte* total, std::byte const* next, std::size_t count, Datatype datatype,
            ReduceOperation operation);

}  // namespace hostless::queue
