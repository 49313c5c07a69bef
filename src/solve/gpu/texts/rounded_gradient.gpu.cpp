// Compiled once for every block size, HOSTLESS_BLOCK.
#include "solve/gpu/instance.gpu.hpp"
#include "solve/methods/conjugate_gradient.impl.hpp"

namespace hostless::gpu {

template Instance const& instance_of<ConjugateGradientMethod, Variant::rounded, HOSTLESS_BLOCK>();

}  // namespace hostless::gpu
