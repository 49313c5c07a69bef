// Compiled once for every block size, HOSTLESS_BLOCK.
#include "solve/gpu/instance.gpu.hpp"

namespace hostless::gpu {

template <>
Instance const& instance_of<TextKind::rounded_cg, HOSTLESS_BLOCK>() {
  return MethodInstance<RoundedGradientTraits, HOSTLESS_BLOCK>::instance;
}

}  // namespace hostless::gpu
