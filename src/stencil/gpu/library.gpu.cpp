// What the GPU library answers to stencils.
#include "device/on_device.hpp"
#include "stencil/gpu/bound_stencil.hpp"
#include "stencil/gpu/instances.hpp"

namespace hostless::gpu {

std::vector<std::unique_ptr<StencilInstance>> const& stencil_instances() {
  static Instances const all = [] {
    Instances made;
    add_jacobi(made);
    add_heat(made);
    add_wave(made);
    add_life(made);
    add_gray_scott(made);
    return made;
  }();
  return all;
}

namespace {

StencilInstance const* find_stencil(StencilText const& text) {
  for (auto const& one : stencil_instances())
    if (one->text == text) return one.get();
  return nullptr;
}

class ThisStencilLibrary final : public StencilLibrary {
 public:
  int devices() const override { return visible_gpus(); }
  StencilDevice device(int device) const override {
    HOSTLESS_DEVICE_PROPERTIES properties{};
    check(HOSTLESS_GPU(GetDeviceProperties)(&properties, device), "asking a GPU what it is");
    int shared = 0;
    check(HOSTLESS_GPU(DeviceGetAttribute)(&shared, HOSTLESS_MOST_SHARED_MEMORY, device),
          "asking for shared memory");
    return {properties.name, properties.multiProcessorCount, shared};
  }
  StencilShapes const* shapes(StencilText const& text) const override {
    StencilInstance const* const found = find_stencil(text);
    return found == nullptr ? nullptr : &found->shapes;
  }
  std::unique_ptr<BoundStencil> bind(StencilProblem const& problem) const override {
    StencilInstance const* const found = find_stencil(problem.text);
    if (found == nullptr || found->parameter_bytes != problem.parameters.size())
      throw Error(ErrorCode::usage, "stencil '" + problem.text.name +
                                        "' has no kernels in this GPU library (it was made for another "
                                        "text). Use StencilRun.");
    return make_bound_stencil(problem, *found);
  }
};

}  // namespace
}  // namespace hostless::gpu

extern "C" __attribute__((visibility("default"))) hostless::gpu::StencilLibrary* hostless_gpu_stencils() {
  static hostless::gpu::ThisStencilLibrary library;
  return &library;
}
