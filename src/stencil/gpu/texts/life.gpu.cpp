#include "stencil/gpu/instance.gpu.hpp"
#include "stencil/gpu/instances.hpp"

namespace hostless::gpu {

void add_life(Instances& all) {
  all.push_back(std::make_unique<InstanceOf<float, stencils::Life>>("life"));
  all.push_back(std::make_unique<InstanceOf<double, stencils::Life>>("life"));
}

}  // namespace hostless::gpu
