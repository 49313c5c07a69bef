#pragma once

#include "hostless/stencil/gpu_stencil.hpp"
#include "stencil/gpu/stencil_library.hpp"

namespace hostless::gpu {

/// Of all that the options leave open and this GPU can do, what costs least a step by a model of few numbers,
/// which were measured on an H200. device: the smallest of the GPUs that the options name.
///
/// Errors  usage  what the options ask for does not fit; the text says why
StencilWay choose_way(Grid const& grid, StencilKernel const& kernel, GpuStencilOptions const& options,
                      StencilShapes const& shapes, StencilDevice const& device);

}  // namespace hostless::gpu
