#pragma once
// Bodies and decisions that every method uses. A body works on one block row and holds no vector pointer (but
// read-only data of the problem); a decision reads only all-reduced values, so every rank takes the same
// branch.

#include <cmath>

#include "hostless/base/host_device.hpp"
#include "hostless/run/state.hpp"
#include "hostless/run/views.hpp"
#include "solve/methods/preconditioner.impl.hpp"

namespace hostless {

HOSTLESS_HOST_DEVICE bool is_finite(double v) { return v - v == 0; }

/// to = from.
struct Copy {
  template <class L, class Sums, class To, class From>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const&, To const& to,
                                       From const& from) const {
    for (int j = 0; j < L::rows; ++j) to(block_row, j) = from(block_row, j);
  }
};

/// r = b - A x, where p = x; sums (r, r) and (r, M r).
template <class M>
struct TrueResidual : Preconditioned<TrueResidual, M> {
  M m;
  double const* b;
  template <class Other>
  HOSTLESS_HOST_DEVICE TrueResidual(TrueResidual<Other> const& same, M preconditioner)
      : m(preconditioner), b(same.b) {}
  HOSTLESS_HOST_DEVICE TrueResidual(M preconditioner, double const* rhs) : m(preconditioner), b(rhs) {}
  HOSTLESS_HOST_DEVICE TrueResidual in_column(std::int64_t offset) const { return {m, b + offset}; }
  template <class L, class Sums, class Products, class P, class R>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const& sum, Products const& a_x,
                                       P const&, R const& r) const {
    for (int j = 0; j < L::rows; ++j) r(block_row, j) = b[block_row.row + j] - a_x(block_row, j);
    double z[L::rows];
    m.apply(block_row, r, z);
    for (int j = 0; j < L::rows; ++j) {
      double const rj = r(block_row, j);
      sum.add(0, rj * rj);
      sum.add(1, rj * z[j]);
    }
  }
};

/// q = the products.
struct Store {
  template <class L, class Sums, class Products, class P, class Q>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const&, Products const& a_p, P const&,
                                       Q const& q) const {
    for (int j = 0; j < L::rows; ++j) q(block_row, j) = a_p(block_row, j);
  }
};

/// Sums (r, z).
struct Dot {
  template <class L, class Sums, class R, class Z>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const& sum, R const& r,
                                       Z const& z) const {
    for (int j = 0; j < L::rows; ++j) sum.add(0, r(block_row, j) * z(block_row, j));
  }
};

/// The recurrence proposes an end: close its gate and ask for the true residual.
HOSTLESS_HOST_DEVICE void ask_for_true_residual(State& s) {
  s.recurrence_rr = s.rr;
  s.iterate = false;
  s.wants_true_residual = true;
}

/// sqrt(square) <= low or > high. Most squares tell without the root, which takes a tenth of a microsecond of
/// an iteration on a GPU, where everybody waits for the decision.
HOSTLESS_HOST_DEVICE bool is_outside(double square, double low, double high) {
  constexpr double margin = 1e-12;  // beyond the rounding of squares and roots
  if (square > low * low * (1 + margin) && square < high * high * (1 - margin)) return false;
  return sqrt(square) <= low || sqrt(square) > high;
}

/// True when the iteration must end here: the recurrence has met the target, or may not go on.
HOSTLESS_HOST_DEVICE bool proposes_end(State const& s) {
  return is_outside(s.rr, s.closes_at(), s.growth_at) || (s.must_end() && !s.pauses_at_end);
}

/// Of the iteration that is complete now. alpha, beta: of its step where the method's steps are those of a
/// Lanczos process, else 0.
HOSTLESS_HOST_DEVICE void log_step(State& s, double alpha, double beta) {
  if (s.history != nullptr && s.iteration < s.history_size)
    s.history[s.iteration] = {s.rr, alpha, beta, s.true_rr};
}

/// Leaves after this iteration where that is wanted: at the next end of an iteration, since one that asks for
/// a true residual cannot be left in between.
HOSTLESS_HOST_DEVICE void pause_where_wanted(State& s) {
  bool const is_due = s.pause_at >= 0 && s.iteration >= s.pause_at;
  if (is_due || (s.pauses_at_end && s.must_end())) s.status = Status::paused;
}

/// The products with the rounded matrix are over: the iteration ends here for the true residual, and goes on
/// exactly.
HOSTLESS_HOST_DEVICE void leave_rounded(State& s, ExactAgain why) {
  s.exact_again = why;
  s.changed_at = s.iteration;
}

/// Share of the true residual at which it is computed anew while the matrix is rounded: the rounding, 6e-8 of
/// the matrix, has not spoilt the steps by then, and true residuals are rare.
constexpr double replaced_share = 1e-5;

/// Growth counts from this residual on.
HOSTLESS_HOST_DEVICE void begin_growth(State& s) {
  s.first_rr = s.rr;
  s.growth_at = s.growth_limit * sqrt(s.rr);
}

/// Tests a true residual for convergence; the only place that says `converged`. Restarts the recurrence from
/// the true residual otherwise. With a rounded matrix that is the plan (residual replacement), unless the
/// true residual has not become smaller: then the rounding has, and the matrix is exact from here on.
/// positive: the scalar index of (r, M r), summed beside (r, r), where the method cannot go on unless it is
/// positive; ScalarIndex::none of methods that do not ask.
template <int positive>
struct ConvergenceTest {
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    s.true_rr = s.rr;
    bool const raised = s.raised, replaced = s.rounded;
    std::int32_t const restarts = s.restarts, replacements = s.replacements;
    s.raised = false;
    if (!s.begun) {
      s.begun = true;
      begin_growth(s);
      s.best_true_residual = s.rr;
      log_step(s, 0, 0);
    } else if (is_finite(s.rr) && replaced) {
      replace(s);
    } else if (is_finite(s.rr) && !raised) {
      ++s.restarts;
      s.useless_restarts = sqrt(s.rr) <= 0.5 * sqrt(s.best_true_residual) ? 0 : s.useless_restarts + 1;
      if (s.rr < s.best_true_residual) s.best_true_residual = s.rr;
    }
    bool const at_rounding = is_at_rounding(s);
    if (at_rounding) keep_near_best(s);
    s.replace_at = s.rounded ? replaced_share * sqrt(s.rr) : 0.0;
    s.wants_true_residual = false;
    if (!is_finite(s.rr) || !is_known_finite(s)) {
      s.status = Status::not_finite;
    } else if (sqrt(s.rr) <= s.target) {
      s.status = Status::converged;
    } else if (s.stop) {
      s.status = Status::aborted;
    } else if (s.iteration >= s.limit) {
      s.status = Status::iteration_limit;
    } else if (at_rounding && sqrt(s.rr) > s.growth_at) {
      s.status = Status::stagnated;
    } else if (sqrt(s.rr) > s.growth_at) {
      s.status = Status::diverged;
    } else if (s.useless_restarts >= 3) {
      s.status = Status::stagnated;
    } else if (is_negative(s)) {
      s.status = Status::indefinite_preconditioner;
    } else if (is_zero(s)) {
      s.status = Status::breakdown;  // r is not zero, yet (r, M r) underflows
    } else {
      s.fresh = true;
      s.iterate = !s.projects;
      if (s.projects) pause_for_projection(s);
    }
    if (s.status == Status::running || s.status == Status::paused || s.status == Status::stagnated) return;
    s.restarts = restarts;  // the end is neither
    s.replacements = replacements;
  }

 private:
  // Less is asked than fp64 tells apart from |b|, and an x was so good that what rounding leaves in r may be outside of A's
  // range: no step takes that away, and the r of bicgstab would grow along it until it has diverged.
  HOSTLESS_HOST_DEVICE static bool is_at_rounding(State const& s) {
    constexpr double spacing = 0x1p-52;  // resolved_at over |b|
    return s.target < s.resolved_at && s.best_true_residual <= s.resolved_at * s.resolved_at / spacing;
  }
  // Steps may still halve that residual. Rounding leaves the spacing of the largest r on the way: how often it is that is
  // how much r grows where steps do get there.
  HOSTLESS_HOST_DEVICE static void keep_near_best(State& s) {
    constexpr double least = 4;
    double const best = sqrt(s.best_true_residual), growth = best / s.resolved_at;
    double const most = best * (growth > least ? growth : least);
    if (most < s.growth_at) s.growth_at = most;
  }
  // Of (r, M r), where it is known here.
  HOSTLESS_HOST_DEVICE static bool is_known_finite(State const& s) {
    if constexpr (positive == ScalarIndex::none) {
      return true;
    } else {
      return s.apart || is_finite(s.value[positive]);
    }
  }
  HOSTLESS_HOST_DEVICE static bool is_negative(State const& s) {
    if constexpr (positive == ScalarIndex::none) {
      return false;
    } else {
      return !s.apart && s.value[positive] < 0;
    }
  }
  HOSTLESS_HOST_DEVICE static bool is_zero(State const& s) {
    if constexpr (positive == ScalarIndex::none) {
      return false;
    } else {
      return !s.apart && s.value[positive] == 0;
    }
  }
  // SolveControl::awaits_projection. What rounding block rows of the null space in r only ever grows: from
  // the best x on, not from the first.
  HOSTLESS_HOST_DEVICE static void pause_for_projection(State& s) {
    s.status = Status::paused;
    double const of_this = s.growth_limit * sqrt(s.rr);
    if (of_this < s.growth_at) s.growth_at = of_this;
  }
  HOSTLESS_HOST_DEVICE static void replace(State& s) {
    ++s.replacements;
    bool const gained = sqrt(s.rr) <= 0.5 * sqrt(s.best_true_residual);
    bool const ends = sqrt(s.rr) <= s.target || s.stop || s.iteration >= s.limit;
    if (!gained && !ends && s.exact_again == ExactAgain::no) leave_rounded(s, ExactAgain::no_gain);
    if (s.exact_again == ExactAgain::no) {
      if (s.rr < s.best_true_residual) s.best_true_residual = s.rr;
      return;
    }
    s.rounded = false;
    s.best_true_residual = s.rr;  // what the rounding has done is no growth of the method
    if (s.rr > s.first_rr) begin_growth(s);
  }
};

}  // namespace hostless
