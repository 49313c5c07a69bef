#pragma once
// `hostless bench stencil --gpus`: the ways of Ismayilov et al. (2023) between GPUs, by their names, and
// ours.

#include "stencil/who_steps.hpp"
#include "stencil_variants.hpp"

namespace hostless {

/// Times the variants of a wish by turns on GPUs of this process; 1: their bits differ.
/// Errors  usage        options of ranks; a grid that does not fit
///         environment  no GPU, or not enough memory there
int time_stencil_on_gpus(VariantsWish const& wish, GpuWords const& gpus);

}  // namespace hostless
