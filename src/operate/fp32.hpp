#pragma once

#include "hostless/base/host_device.hpp"

namespace hostless {

/// Whether rounding to fp32 leaves a finite value finite, and another number than zero not zero. Those that
/// are not finite stay what they are.
HOSTLESS_HOST_DEVICE bool fits_fp32(double value) {
  auto const rounded = static_cast<double>(static_cast<float>(value));
  return value - value != 0 || (rounded - rounded == 0 && (rounded != 0) == (value != 0));
}

}  // namespace hostless
