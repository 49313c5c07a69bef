#pragma once
// Each in a source file of its own (texts/), so that they compile side by side.

#include "stencil/gpu/instance.hpp"

namespace hostless::gpu {

using Instances = std::vector<std::unique_ptr<StencilInstance>>;

void add_jacobi(Instances& all);
void add_heat(Instances& all);
void add_wave(Instances& all);
void add_life(Instances& all);
void add_gray_scott(Instances& all);

}  // namespace hostless::gpu
