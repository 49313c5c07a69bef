// Systems with A 1 = 0: what has to do with the constant vector.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "solve/measure.hpp"
#include "solve/methods/method_vectors.hpp"
#include "solve/setup/manufactured.hpp"
#include "solve/solver_parts.hpp"

namespace hostless {

Solver::Parts::ConstantImage Solver::Parts::constant_image() {
  std::vector<double> ones(rhs.size(), 1.0), product(rhs.size());
  multiply(ones.data(), product.data());
  double constant = 0;
  for (double v : product) constant = std::max(constant, std::abs(v));
  constant = group().max(constant);
  for (std::size_t i = 0; i < ones.size(); ++i)
    ones[i] = random_entry(13, matrix.global_row(static_cast<std::int64_t>(i)));
  multiply(ones.data(), product.data());
  double scale = 0, sum = 0, size = 0;
  for (double v : product) {
    scale = std::max(scale, std::abs(v));
    sum += v;
    size += std::abs(v);
  }
  scale = group().max(scale);
  sum = group().sum(sum);
  return {constant, scale, std::abs(sum), group().sum(size)};
}

// New values may be of a regular matrix, for which a projection gives a wrong x.
void Solver::Parts::refresh_null_space() {
  if (!options.null_space_constant || null_space_version == matrix.values_version()) return;
  auto const image = constant_image();
  if (!image.vanishes()) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format(
            "the constant vector is not in the null space: |A 1| reaches {:.3e} where |A x| of a random x "
            "reaches {:.3e}. Drop --null-space constant.",
            image.constant, image.scale));
  }
  if (!method().needs_symmetric() && !image.vanishes_from_left()) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format("A 1 = 0, but not A' 1: the entries of A x of a random x add up to {:.3e}, without their "
                    "signs to {:.3e} (b then need not lose its mean). Drop --null-space constant.",
                    image.sum, image.size));
  }
  null_space_version = matrix.values_version();
}

// Subtracts the mean, which `state` holds the sum of (see `measure`), and returns it.
double Solver::Parts::take_mean(std::span<double> values) const {
  double const mean = state.value[ScalarIndex::measured] / static_cast<double>(matrix.global_rows());
  for (double& v : values) v -= mean;
  return mean;
}

// True when x has become another one. A mean that is not finite stays: the true residual will say so.
bool Solver::Parts::project_solution() {
  State const before = state;
  state = State{};
  measure(*engine, fields[0].data());
  bool const lost = state.status != Status::running;
  double const sum = state.value[ScalarIndex::measured];
  bool const changes = !lost && sum != 0 && std::isfinite(sum);
  if (changes) take_mean(fields[0]);
  state = before;
  if (lost) state.status = Status::peer_lost;
  return changes;
}

// r of a true residual without its mean. What rounding has left of the null space there belongs to no x:
// steps that have used up the rest of r would only grow along it.
void Solver::Parts::project_residual() {
  State tested = state;
  std::span<double> const r = fields[1];
  state = State{};
  measure(*engine, r.data());
  bool lost = state.status != Status::running;
  if (!lost) {
    take_mean(r);
    measure_residual(*engine, preconditioner(), r.data());
    lost = state.status != Status::running;
  }
  tested.rr = state.rr;
  double const rz = state.value[ScalarIndex::measured];
  bool const is_asked = method().square_in_m != ScalarIndex::none && !tested.apart;
  if (method().square_in_m != ScalarIndex::none) tested.value[method().square_in_m] = rz;
  state = tested;
  state.status = lost                  ? Status::peer_lost
                 : state.rr == 0       ? Status::stagnated  // no step changes what is left
                 : !is_asked || rz > 0 ? Status::running
                 : rz == 0             ? Status::breakdown
                                       : Status::indefinite_preconditioner;
  state.iterate = state.status == Status::running;
}

// A residual above the first tells them from a matrix that is only nearly singular, and still converges. Every
// rank sees the same numbers.
bool Solver::Parts::sees_null_direction(State const& s) {
  if (!null_directions || s.iteration < 1 || s.iteration >= s.history_size) return false;
  bool const is_null = null_directions->add(s.history[s.iteration]);
  saw_null_direction = saw_null_direction || (is_null && s.rr > s.first_rr);
  return saw_null_direction;
}

// In the end, where nobody looked on the way: a GPU tells nobody of its steps.
bool Solver::Parts::steps_saw_null_direction() const {
  return null_directions && first_null_direction() >= 0;
}

// The first step along a null vector, whether or not somebody has told of a null space; below 0: none is known.
std::int64_t Solver::Parts::first_null_direction() const {
  if (!method().makes_lanczos_steps) return -1;
  auto const kept = std::min<std::int64_t>(state.iteration + 1, static_cast<std::int64_t>(history.size()));
  NullDirections all;
  for (std::int64_t k = 1; k < kept; ++k)
    if (all.add(history[static_cast<std::size_t>(k)])) return k;
  return -1;
}

// A 1 may be a little off zero, so x without its mean is another one than the method has judged. It is handed
// back to the method as after any true residual: there it is judged, and the method goes on from it where it
// does not do. Three of these in a row that gain nothing are `stagnated`, as with every restart.
void Solver::Parts::iterate_and_project(Result& result) {
  for (std::int64_t projected_at = -1;;) {
    iterate(result);
    if (saw_null_direction && state.status == Status::aborted && why_stopped.empty()) {
      state.status = Status::stagnated;
      return;
    }
    if (state.status == Status::peer_lost || state.iteration == projected_at || !project_solution()) return;
    switch (state.status) {
      case Status::converged:
      case Status::iteration_limit:
      case Status::stagnated:
      case Status::diverged:
      case Status::aborted:
        break;
      default:
        return;  // in the middle of an iteration: find_true_residual looks at this x
    }
    projected_at = state.iteration;
    state.growth_at = state.growth_limit * std::sqrt(state.first_rr);  // the best one was another x
    state.status = Status::running;
    state.wants_true_residual = true;
    state.iterate = false;
  }
}

}  // namespace hostless
