#include "stencil/gpu/instance.gpu.hpp"
#include "stencil/gpu/instances.hpp"

namespace hostless::gpu {

void add_jacobi(Instances& all) {
  all.push_back(std::make_unique<InstanceOf<float, stencils::Jacobi2d>>("jacobi2d"));
  all.push_back(std::make_unique<InstanceOf<double, stencils::Jacobi2d>>("jacobi2d"));
  all.push_back(std::make_unique<InstanceOf<float, stencils::Jacobi3d>>("jacobi3d"));
  all.push_back(std::make_unique<InstanceOf<double, stencils::Jacobi3d>>("jacobi3d"));
}

}  // namespace hostless::gpu
