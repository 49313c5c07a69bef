#pragma once

#include "hostless/run/state.hpp"

namespace hostless::test {

/// In the middle of a solve whose first residual was 1.
inline State iterating() {
  State s;
  s.wants_true_residual = false;
  s.iterate = true;
  s.fresh = false;
  s.begun = true;
  s.target = s.propose_at = 1e-3;
  s.limit = 100;
  s.first_rr = s.best_true_residual = 1;
  s.growth_at = 1e5;
  return s;
}

}  // namespace hostless::test
