#pragma once

#include <vector>

#include "solve/gpu_library.hpp"

namespace hostless::gpu {

/// As Library::prove_paths, of GPUs 0 to devices - 1.
std::vector<PathFacts> prove_paths(int devices);

}  // namespace hostless::gpu
