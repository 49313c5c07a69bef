#pragma once
// What the methods share whose inner products need one reduction an iteration.

#include "solve/methods/preconditioners.hpp"

namespace hostless {

/// alpha and beta from gamma = (r, u), delta = (A u, u) with u = M r: beta = gamma / gamma', and
/// alpha = gamma / (delta - beta gamma / alpha') (Chronopoulos and Gear). The sums belong to the r of the
/// iteration that has just been completed, or to the true residual of a fresh start. recurs: A u comes from a
/// recurrence but at a fresh start, the only place where the sign of delta then says something of A.
template <bool recurs>
struct OneReduction {
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    double const gamma = s.value[cg::rz], delta = s.value[cg::pq];
    if (!s.fresh) {
      ++s.iteration;
      log_step(s, s.value[cg::alpha], s.value[cg::beta]);
    }
    if (!is_finite(s.rr) || !is_finite(gamma) || !is_finite(delta)) {
      s.status = Status::not_finite;
    } else if (gamma < 0) {
      s.status = Status::indefinite_preconditioner;
    } else if (!s.fresh && (proposes_end(s) || gamma == 0)) {
      ask_for_true_residual(s);
    } else if (recurs && !s.fresh && delta < 0) {
      ask_for_true_residual(s);
    } else if (delta < 0) {
      s.status = Status::indefinite_matrix;
    } else if (delta == 0) {
      if (s.fresh) s.status = Status::breakdown;
      ask_for_true_residual(s);
    } else {
      go_on(s, gamma, delta);
    }
  }

 private:
  HOSTLESS_HOST_DEVICE static void go_on(State& s, double gamma, double delta) {
    s.value[cg::beta] = s.fresh ? 0.0 : gamma / s.value[cg::rz_before];
    double const divisor = s.fresh ? delta : delta - s.value[cg::beta] * gamma / s.value[cg::alpha];
    if (!(divisor > 0))
      return ask_for_true_residual(s);  // (p, A p) of the recurrence lost its sign to rounding: start anew
    s.value[cg::alpha] = gamma / divisor;
    s.value[cg::rz_before] = gamma;
    s.fresh = false;
    pause_where_wanted(s);
  }
};

}  // namespace hostless
