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
  int width = n / 2;
  for (; width >= 4; width /= 2) {
    for (int i = 0; i < width; i += 4) {  // four at once: the compiler makes vectors of them
      double const a = v[2 * i] + v[2 * i + 1], b = v[2 * i + 2] + v[2 * i + 3];
      double const c = v[2 * i + 4] + v[2 * i + 5], d = v[2 * i + 6] + v[2 * i + 7];
      v[i] = a, v[i + 1] = b, v[i + 2] = c, v[i + 3] = d;
    }
  }
  for (; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) v[i] = v[2 * i] + v[2 * i + 1];
  }
  return v[0];
}

}  // namespace hostless
