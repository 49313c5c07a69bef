#pragma once

namespace hostless::gpu {

/// What kernels that work for several ranks know of at most: ranks, rounds of a plan, and numbers of one sum.
constexpr int most_ranks = 8, most_rounds = 8, widest_sum = 4;

}  // namespace hostless::gpu
