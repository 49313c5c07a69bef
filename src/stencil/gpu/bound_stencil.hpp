#pragma once

#include <memory>

#include "stencil/gpu/instance.hpp"

namespace hostless::gpu {

/// Inside a GPU library.
std::unique_ptr<BoundStencil> make_bound_stencil(StencilProblem const& problem,
                                                 StencilInstance const& instance);

}  // namespace hostless::gpu
