#pragma once

#include <cstdint>

#include "hostless/base/host_device.hpp"

namespace hostless {

/// The smallest power of two that is at least n.
HOSTLESS_HOST_DEVICE int power_of_two(int n) {
  int p = 1;
  while (p < n) p *= 2;
  return p;
}

/// The one order of sums over an index: t[i] = t[2 i] + t[2 i + 1], level by level. `n` is a power of two;
/// missing entries are +0.0. Destroys v. Any aligned power-of-two group may be combined earlier elsewhere:
/// same bits.
HOSTLESS_HOST_DEVICE double tree(double* v, int n) {
  for (; n >= 8; n /= 8) {  // three levels at once: each by itself waits for the stores of the one before
    for (int i = 0; i < n / 8; ++i) {
      double const* const t = v + 8 * i;
      v[i] = ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]));
    }
  }
  if (n == 4) return (v[0] + v[1]) + (v[2] + v[3]);
  return n == 2 ? v[0] + v[1] : v[0];
}

}  // namespace hostless
