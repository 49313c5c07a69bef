#include "stencil/gpu/instance.gpu.hpp"
#include "stencil/gpu/instances.hpp"

namespace hostless::gpu {

void add_wave(Instances& all) {
  all.push_back(std::make_unique<InstanceOf<float, stencils::Wave2d>>("wave"));
  all.push_back(std::make_unique<InstanceOf<double, stencils::Wave2d>>("wave"));
  all.push_back(std::make_unique<InstanceOf<float, stencils::Wave3d>>("wave"));
  all.push_back(std::make_unique<InstanceOf<double, stencils::Wave3d>>("wave"));
}

}  // namespace hostless::gpu
