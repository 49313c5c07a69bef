#pragma once
// Signals beside what a library puts into another rank's memory: each is a count of arrivals, and whoever
// waits knows the next one. Plain functions, for kernels and for tests without a GPU.

#include <algorithm>
#include <cstdint>

#include "hostless/base/host_device.hpp"

namespace hostless::gpu {

/// The rank that would send is lost, or has given others up.
constexpr std::uint64_t poisoned_signal = std::uint64_t{1} << 63;

enum class Arrival { none, whole, broken };

/// What a signal says to whoever awaits arrival number `expected` (from 1) of its buffer. More arrivals than
/// that cannot be: the sender would have overwritten what nobody has read yet.
HOSTLESS_HOST_DEVICE Arrival arrival_of(std::uint64_t signal, std::uint64_t expected) {
  if (signal == expected) return Arrival::whole;
  return signal + 1 == expected ? Arrival::none : Arrival::broken;
}

/// How long a kernel waits, by its clock. A limit without an end is one of years, as Deadline's: what does
/// not fit into a count would be none.
inline std::uint64_t cycles_of(double seconds, double hertz) {
  constexpr double years = 1e8;
  return static_cast<std::uint64_t>(std::min(seconds, years) * hertz);
}

}  // namespace hostless::gpu
