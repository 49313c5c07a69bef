#pragma once
// What follows from the complete sums of MINRES (minres.impl.hpp), and what it keeps in State::value.

#include "solve/methods/bodies.impl.hpp"

namespace hostless {

namespace minres {
enum Value : int {
  square,    ///< y' M y = beta^2
  diagonal,  ///< v' A v
  x_square,  ///< x' x
  beta,
  inverse_beta,  ///< 0 where beta is
  by_before,     ///< beta over the one before: what is taken of y_before
  by_newest,     ///< diagonal / beta: what is taken of y
  norm,          ///< of the tridiagonal matrix, its largest sum of a row: about |M A|
  // The QR decomposition of the tridiagonal matrix: its last reflection, and what meets the next column.
  cosine,
  sine,
  delta_next,
  epsilon_next,
  residual,  ///< |r| in the norm of M
  // The last column of R, and what x and r take of its direction.
  epsilon,
  delta,
  inverse_gamma,
  step,           ///< of x
  keep,           ///< of r
  take,           ///< of y, for r
  why,            ///< a Why
  milestone,      ///< |r| in the norm of M, where it was last looked at how far it has come
  x_square_then,  ///< x' x there
  values
};
/// Why the last true residual was asked for, until the next step.
enum Why : int {
  an_end,
  least_squares,  ///< A r vanished
  comparison,     ///< with the recurrence
  agreement       ///< it was one: the recurrence goes on where it stands
};
HOSTLESS_HOST_DEVICE bool is(State const& s, Why reason) {
  return s.value[why] == static_cast<double>(reason);
}
constexpr double fallen = 0.1;
/// So that the next look is where |r| is half of what it is now: restarts have begun to gain nothing.
HOSTLESS_HOST_DEVICE void look_at_half(State& s) { s.value[milestone] = 0.5 / fallen * s.value[residual]; }
}  // namespace minres

/// The true residual. Where it was only to be compared with that of the recurrence, and both agree, the
/// method does not start anew: a recurrence that is right loses all it knows of A by that.
struct ComparedResidual {
  static constexpr double agree = 2;  ///< squares: what rounding left between both is less than either
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    bool const agrees = minres::is(s, minres::comparison) && s.rr <= agree * s.recurrence_rr;
    if (agrees) {
      s.value[minres::why] = minres::agreement;
      s.raised = true;  // no restart
      if (s.rr < s.best_true_residual) s.best_true_residual = s.rr;
    }
    ConvergenceTest<minres::square>{}(s);
  }
};

/// beta from y' M y. With M apart that is not known before M y is.
HOSTLESS_HOST_DEVICE bool takes_beta(State& s) {
  double const square = s.value[minres::square];
  if (!is_finite(square)) {
    s.status = Status::not_finite;
  } else if (square < 0) {
    s.status = Status::indefinite_preconditioner;
  } else {
    s.value[minres::beta] = sqrt(square);
    s.value[minres::inverse_beta] = square > 0 ? 1 / s.value[minres::beta] : 0.0;
    return true;
  }
  return false;
}

template <bool known>
struct LanczosBegun {
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    if (s.apart != known || minres::is(s, minres::agreement) || !takes_beta(s)) return;
    if (s.value[minres::square] == 0) s.status = Status::breakdown;  // r is not zero, yet r' M r underflows
    s.value[minres::by_before] = 0;
    s.value[minres::cosine] = -1;
    s.value[minres::sine] = s.value[minres::delta_next] = s.value[minres::epsilon_next] = 0;
    s.value[minres::residual] = s.value[minres::beta];
    if (minres::is(s, minres::comparison)) minres::look_at_half(s);
  }
};

/// The iteration before this product is complete: r is that of x.
///
/// Rounding keeps |b - A x| above a few eps |A| |x|, and steps from there on may only throw x about along
/// null vectors. |A| and |r| are known in the norm of M, so |x| is brought to it by what |r| is in both: an
/// estimate that rows of very different size make far too high. So below it the true residual is asked for,
/// at each tenth of |r|, and compared with the recurrence. At once, to start anew, and three times in vain
/// before the end, only where it is the end: x has grown tenfold while |r| has not fallen to a tenth, |r| is
/// below eps times the first, or restarts gain nothing.
///
/// Where A is singular and no x reaches b, x grows along null vectors as soon as rounding has brought them into the
/// Lanczos vectors, and rounding of x then spoils r. The steps tell in time: A times what they have added to x has the
/// length of what the square of |r| has fallen by, under a root. Where x has grown tenfold and that is nothing, A r has all
/// but vanished, and going on from the true residual would lose more of it: that is the end.
struct MinresResidual {
  static constexpr double attainable = 8 * 2.3e-16;
  static constexpr double grown = 100;            ///< of x' x
  static constexpr double last_digit = 0x1p-104;  ///< of squares
  static constexpr double spacing = 0x1p-52;
  static constexpr double singular = 1e-13;  ///< |A x| / |A| |x| of what was added to x
  static constexpr double paid = 1e-4;  ///< share of |r| that it took away, where A only is ill-conditioned
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    if (!s.fresh) {
      ++s.iteration;
      log_step(s, 0, 0);
    }
    if (!is_finite(s.rr) || !is_finite(s.value[minres::diagonal])) {
      s.status = Status::not_finite;
    } else if (!s.fresh && wants_true_residual(s)) {
      ask_for_true_residual(s);
    } else {
      s.value[minres::by_newest] = s.value[minres::diagonal] * s.value[minres::inverse_beta];
    }
  }

 private:
  HOSTLESS_HOST_DEVICE static bool wants_true_residual(State& s) {
    double const x_square = s.value[minres::x_square];
    bool const has_fallen = s.value[minres::residual] <= minres::fallen * s.value[minres::milestone];
    if (has_fallen || s.value[minres::milestone] == 0) {
      s.value[minres::milestone] = s.value[minres::residual];
      s.value[minres::x_square_then] = x_square;
      if (s.useless_restarts > 0) minres::look_at_half(s);
    }
    if (proposes_end(s) || s.value[minres::beta] == 0) return true;
    if (!is_near_the_end_of_digits(s)) return has_left_for_null_vectors(s);
    if (s.useless_restarts > 1 || s.rr <= last_digit * s.first_rr) return true;
    if (has_fallen) s.value[minres::why] = minres::comparison;
    return has_fallen || x_square > grown * s.value[minres::x_square_then];
  }
  HOSTLESS_HOST_DEVICE static bool has_left_for_null_vectors(State& s) {
    double const x_square = s.value[minres::x_square], residual = s.value[minres::residual];
    if (x_square <= grown * s.value[minres::x_square_then]) return false;
    double const fallen_by = s.value[minres::milestone] - residual;
    double const image =
        fmax(fallen_by * (s.value[minres::milestone] + residual), spacing * residual * residual);
    s.value[minres::milestone] = residual;
    s.value[minres::x_square_then] = x_square;
    bool const is_null_vector =
        sqrt(image) * residual <= singular * s.value[minres::norm] * (sqrt(s.rr) * sqrt(x_square));
    if (!is_null_vector || fallen_by > paid * residual) return false;
    s.useless_restarts = 2;  // and a third, as its true residual is not half of this one
    if (s.rr < s.best_true_residual) s.best_true_residual = s.rr;
    return true;
  }
  HOSTLESS_HOST_DEVICE static bool is_near_the_end_of_digits(State const& s) {
    double const residual = s.value[minres::residual];
    return residual * residual <=
           attainable * s.value[minres::norm] * (sqrt(s.rr) * sqrt(s.value[minres::x_square]));
  }
};

/// The next reflection of the QR decomposition, and with it the step that the next phase makes.
///
/// |A r| / (|A| |r|) is known before it. Where that vanishes no step makes r smaller: what is left of b is
/// outside of A's range, or x is as good as it gets; the true residual tells which.
template <bool known>
struct MinresRotation {
  static constexpr double least_squares = 1e-12;
  static constexpr double near_least_squares = 1e-10;  ///< of the true residual behind that

  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    double const beta_before = s.value[minres::beta];
    if (s.apart != known || !takes_beta(s)) return;
    double const beta = s.value[minres::beta], diagonal = s.value[minres::diagonal];
    double const cosine = s.value[minres::cosine], sine = s.value[minres::sine];
    double const gamma_bar = sine * s.value[minres::delta_next] - cosine * diagonal;
    double const delta = cosine * s.value[minres::delta_next] + sine * diagonal;
    double const delta_next = -cosine * beta;
    double const of_before = s.value[minres::by_before] == 0 ? 0.0 : beta_before;
    s.value[minres::norm] = fmax(s.value[minres::norm], fabs(diagonal) + of_before + beta);
    double const left = fmax(fabs(gamma_bar), fabs(delta_next));  // |A r| / |r|, or a little less
    double const near = s.fresh && minres::is(s, minres::least_squares) ? near_least_squares : least_squares;
    bool const first = s.fresh && !minres::is(s, minres::agreement);
    s.value[minres::why] = minres::an_end;
    if (left <= near * s.value[minres::norm]) return end_of_steps(s, first);
    double const gamma = hypotenuse(gamma_bar, beta);
    s.value[minres::epsilon] = s.value[minres::epsilon_next];
    s.value[minres::delta] = delta;
    s.value[minres::inverse_gamma] = 1 / gamma;
    s.value[minres::cosine] = gamma_bar / gamma;
    s.value[minres::sine] = beta / gamma;
    s.value[minres::delta_next] = delta_next;
    s.value[minres::epsilon_next] = sine * beta;
    double const before = s.value[minres::residual];
    s.value[minres::step] = s.value[minres::cosine] * before;
    s.value[minres::residual] = s.value[minres::sine] * before;
    s.value[minres::keep] = s.value[minres::sine] * s.value[minres::sine];
    s.value[minres::take] = before * s.value[minres::cosine] / gamma;
    s.value[minres::by_before] = beta / beta_before;
    s.fresh = false;
    pause_where_wanted(s);
  }

 private:
  /// One of them is not zero. Without squares that overflow.
  HOSTLESS_HOST_DEVICE static double hypotenuse(double a, double b) {
    double const larger = fmax(fabs(a), fabs(b)), ratio = fmin(fabs(a), fabs(b)) / larger;
    return larger * sqrt(1 + ratio * ratio);
  }
  HOSTLESS_HOST_DEVICE static void end_of_steps(State& s, bool first) {
    if (first) s.status = s.restarts > 0 ? Status::stagnated : Status::breakdown;
    s.value[minres::why] = minres::least_squares;
    ask_for_true_residual(s);
  }
};

}  // namespace hostless
