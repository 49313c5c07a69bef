#pragma once

#include <optional>

#include "hostless/stencil/gpu_stencil.hpp"
#include "stencil/gpu/stencil_library.hpp"

namespace hostless::gpu {

struct ResidentWish {
  int warps = 1, depth = 2;
  int parts = 1;  ///< each has whole rows of tiles
};
/// Tiles of `depth` steps between two exchanges, one a multiprocessor of the parts' GPUs (device: what a part
/// has of one), in the fewest windows of this shape; none: they are too many, or the windows too small.
std::optional<ResidentPlan> resident_plan(Grid const& grid, StencilKernel const& kernel,
                                          StencilShapes::Resident const& kind, ResidentWish const& wish,
                                          StencilDevice const& device);
std::optional<StreamedPlan> streamed_plan(Grid const& grid, StencilKernel const& kernel,
                                          StencilShapes::Streamed const& kind);

/// Of all that the options leave open and this GPU can do, what costs least a step by a model of few numbers,
/// which were measured on an H200. device: the smallest of the GPUs that the options name.
///
/// Errors  usage  what the options ask for does not fit; the text says why
StencilWay choose_way(Grid const& grid, StencilKernel const& kernel, GpuStencilOptions const& options,
                      StencilShapes const& shapes, StencilDevice const& device);

}  // namespace hostless::gpu
