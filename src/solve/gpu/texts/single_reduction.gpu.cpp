// Compiled once for every block size, HOSTLESS_BLOCK.
#include "solve/gpu/instance.gpu.hpp"
#include "solve/methods/single_reduction.impl.hpp"

namespace hostless::gpu {

template Instance const& instance_of<SingleReductionMethod, Variant::plain, HOSTLESS_BLOCK>();

}  // namespace hostless::gpu
