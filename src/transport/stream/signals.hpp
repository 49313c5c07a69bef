#pragma once
// Signals beside what a library puts into another rank's memory: each is a count of arrivals, and whoever
// waits knows the next one. Plain functions, for kernels and for tests without a GPU.

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

}  // namespace hostless::gpu
