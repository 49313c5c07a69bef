#include "stencil/gpu/instance.gpu.hpp"
#include "stencil/gpu/instances.hpp"

namespace hostless::gpu {

void add_heat(Instances& all) {
  all.push_back(std::make_unique<InstanceOf<float, stencils::Heat2d>>("heat"));
  all.push_back(std::make_unique<InstanceOf<double, stencils::Heat2d>>("heat"));
  all.push_back(std::make_unique<InstanceOf<float, stencils::Heat3d>>("heat"));
  all.push_back(std::make_unique<InstanceOf<double, stencils::Heat3d>>("heat"));
}

}  // namespace hostless::gpu
