#pragma once

#include <vector>

#include "hostless/plan/halo_plan.hpp"

namespace hostless {

/// [plan.ghosts] the stage that writes each ghost, -1 if none does.
std::vector<StageId> ghost_writers(HaloPlan const& plan);

}  // namespace hostless
