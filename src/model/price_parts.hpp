#pragma once

#include "hostless/model/price.hpp"

namespace hostless {

/// Ranks of a node whose bytes pass the limit together; they fill one socket after the other.
int ranks_at_limit(InjectionLimit const& limit, NodeShape const& node, MemoryKind memory, int ranks);
/// (ranks^p + all^p - own^p)^(1/p), scaled so that no power overflows; at least `ranks`.
double join_injection(double ranks, double all, double own, double p);

}  // namespace hostless
