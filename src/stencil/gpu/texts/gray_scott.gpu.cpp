#include "stencil/gpu/instance.gpu.hpp"
#include "stencil/gpu/instances.hpp"

namespace hostless::gpu {

void add_gray_scott(Instances& all) {
  all.push_back(std::make_unique<InstanceOf<float, stencils::GrayScott>>("gray_scott"));
  all.push_back(std::make_unique<InstanceOf<double, stencils::GrayScott>>("gray_scott"));
}

}  // namespace hostless::gpu
