#pragma once

#include "device/memory.hpp"

namespace hostless::gpu {

/// Of a device at its highest: waits counted in its cycles may be a little longer than asked for.
inline double clock_hertz(int device) {
  int kilohertz = 0;
  check(HOSTLESS_GPU(DeviceGetAttribute)(&kilohertz, HOSTLESS_CLOCK_RATE, device), "asking for the clock");
  return 1e3 * kilohertz;
}

}  // namespace hostless::gpu
