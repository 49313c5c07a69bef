#pragma once

#include <cstdint>

#include "hostless/base/host_device.hpp"
#include "hostless/base/status.hpp"

namespace hostless {

/// Which phases are alive. The run asks; bodies never do.
enum class Gate : std::int32_t {
  solve,          ///< the solve has not ended
  true_residual,  ///< the true residual must be computed (at the start, and whenever the recurrence proposes
                  ///< an end)
  begin,          ///< the first iteration after a true residual
  iterate         ///< the iteration goes on
};

/// Why the products of iterations have gone back to the exact matrix (State::rounded).
enum class ExactAgain : std::uint8_t {
  no,
  curvature,  ///< the rounded matrix is not positive definite
  no_gain     ///< its steps did not halve the true residual
};

/// What is kept of an iteration: number 0 is the beginning, which no step led to.
struct StepRecord {
  double rr;           ///< r' r of the recurrence after it
  double alpha, beta;  ///< of its step, 0 where it is none of a Lanczos process; beta 0: the first one after
                       ///< a true residual
  double true_rr;      ///< of the last true residual before it
};

/// What every text shares of a solve: settings, status, gates, iteration, history, and what true residuals,
/// restarts and residual replacement need. All that shared code may read. The same bits on every rank: every
/// decision reads only all-reduced values.
struct SolveControl {
  // Settings.
  double target = 0;  ///< max(rtol |b|, atol), on norms, not squares
  double propose_at =
      0;  ///< >= target: where the recurrence asks for the true residual, however small target is
  double resolved_at = 0;         ///< spacing of fp64 times |b|: a target below it is met by luck alone
  double growth_limit = 1e10;     ///< SolveOptions::divergence_limit
  std::int64_t limit = 0;         ///< max_iterations
  std::int64_t pause_at = -1;     ///< leave with `paused` after this iteration, or the next that can be left
  StepRecord* history = nullptr;  ///< [history_size] by iteration, or null
  std::int64_t history_size = 0;

  double rr = 0;  ///< r' r

  // True residual.
  double first_rr = 0;            ///< |b - A x0|^2
  double growth_at = 0;           ///< growth_limit |b - A x0|: `diverged` above
  double true_rr = 0;             ///< of the last true residual
  double best_true_residual = 0;  ///< smallest true r' r seen
  double recurrence_rr = 0;       ///< r' r of the recurrence when the last true residual was asked for

  // Products of iterations with the matrix rounded to fp32; those of the true residual are exact.
  double replace_at = 0;  ///< while `rounded`: where the residual is replaced by the true residual
  /// Iterations after this one have the matrix and the preconditioner that the last one has: `exact_again`
  /// and `raises` set it.
  std::int64_t changed_at = 0;
  std::int32_t replacements = 0;
  bool rounded = false;  ///< Gate::iterate multiplies with the rounded matrix
  ExactAgain exact_again = ExactAgain::no;
  /// Where the limit or a wish ends the solve it leaves with `paused` first: behind the true residual of an
  /// end the iterations cannot be gone on with bit for bit.
  bool pauses_at_end = false;

  std::int64_t iteration = 0;
  std::int32_t restarts = 0;  ///< replacements not counted
  std::int32_t useless_restarts = 0;
  std::int32_t raises = 0;  ///< times the bound of a polynomial (chebyshev::upper) was too low
  Status status = Status::running;
  bool wants_true_residual = true;  ///< Gate::true_residual
  bool iterate = false;             ///< Gate::iterate
  bool fresh = true;                ///< no direction yet: beta is to be taken as zero
  bool begun = false;               ///< the first true residual has been judged
  bool stop = false;                ///< somebody asked to stop; seen by all ranks at the same sum
  bool apart = false;  ///< M is a function of the user or a polynomial: (r, z) comes from a sum of its own
  bool raised =
      false;  ///< the true residual was asked for because that bound was too low: no restart of the method
  bool projects = false;  ///< A 1 = 0: every true residual that is no end pauses, so that r can lose its mean

  /// |r| of the recurrence at which the iteration ends, for good or for a true residual to go on from.
  HOSTLESS_HOST_DEVICE double closes_at() const { return replace_at > propose_at ? replace_at : propose_at; }
  /// Whatever the residual is.
  HOSTLESS_HOST_DEVICE bool must_end() const { return iteration >= limit || stop; }
  /// Whether products in a phase of this gate are those of the rounded matrix.
  HOSTLESS_HOST_DEVICE bool multiplies_rounded(Gate gate) const { return rounded && gate == Gate::iterate; }
  /// Paused behind a true residual, until r has lost its mean; then `iterate` opens.
  HOSTLESS_HOST_DEVICE bool awaits_projection() const {
    return status == Status::paused && projects && !wants_true_residual && !iterate;
  }
  HOSTLESS_HOST_DEVICE bool open(Gate gate) const {
    bool const alive = status == Status::running;
    switch (gate) {
      case Gate::solve:
        return alive;
      case Gate::true_residual:
        return alive && wants_true_residual;
      case Gate::begin:
        return alive && iterate && fresh;
      case Gate::iterate:
        return alive && iterate;
    }
    return false;
  }
};

/// The scalars of a solve. One trivially copyable struct for all methods, so that a checkpoint, a pause and a
/// kernel argument are copies.
struct State : SolveControl {
  static constexpr int values = 24;
  /// The method's own scalars, at scalar indices that an enum of it names. Only its own bodies and decisions
  /// read them, and who asked its descriptor for one.
  double value[values] = {};

  /// The last ones are a polynomial's, whatever the method.
  static constexpr int values_of_polynomial = 2;

  /// All but those that a method with `own` values never has: decisions work on such a copy where registers
  /// are short.
  template <int own>
  HOSTLESS_HOST_DEVICE void copy_scalars(State const& from) {
    static_cast<SolveControl&>(*this) = from;
    for (int k = 0; k < own; ++k) value[k] = from.value[k];
    for (int k = values - values_of_polynomial; k < values; ++k) value[k] = from.value[k];
  }
  HOSTLESS_HOST_DEVICE double& at(int scalar) { return scalar < 0 ? rr : value[scalar]; }
};

/// Whether a phase of this gate has one of these right-hand sides to work on.
HOSTLESS_HOST_DEVICE bool any_open(State const* columns, int count, Gate gate) {
  for (int c = 0; c < count; ++c)
    if (columns[c].open(gate)) return true;
  return false;
}
/// Whether a loop of this gate goes on: right-hand sides that iterate wait where another one wants its true
/// residual, which then costs one product, so that none of them waits until all others have ended.
HOSTLESS_HOST_DEVICE bool loop_goes_on(State const* columns, int count, Gate gate) {
  if (gate == Gate::iterate && count > 1 && any_open(columns, count, Gate::true_residual)) return false;
  return any_open(columns, count, gate);
}

/// Where a value of a sum goes in a State (State::at), those that belong to no method.
struct ScalarIndex {
  static constexpr int none = -2;
  static constexpr int rr = -1;       ///< SolveControl::rr
  static constexpr int measured = 0;  ///< beside rr, of texts that only measure
};

/// Where the K values of one sum go: constants, which is what they must be in a kernel that runs to the end.
template <int K>
struct Into {
  static constexpr int width = K;
  int to[K == 0 ? 1 : K];
};
template <class... Indices>
HOSTLESS_HOST_DEVICE constexpr Into<sizeof...(Indices)> into(Indices... indices) {
  return {{static_cast<int>(indices)...}};
}
HOSTLESS_HOST_DEVICE constexpr Into<0> nothing() { return {{0}}; }

/// The decision that changes nothing.
struct NoDecision {
  HOSTLESS_HOST_DEVICE void operator()(State&) const {}
};

}  // namespace hostless
