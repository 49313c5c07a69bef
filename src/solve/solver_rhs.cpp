// What is known of a right-hand side before the first iteration.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "solve/measure.hpp"
#include "solve/methods/method_vectors.hpp"
#include "solve/solver_parts.hpp"

namespace hostless {
namespace {

// The largest |value|, infinity where one is NaN.
double largest(std::span<double const> values) {
  double most = 0;
  for (double v : values)
    most = std::max(most, std::isfinite(v) ? std::abs(v) : std::numeric_limits<double>::infinity());
  return most;
}

}  // namespace

void Solver::Parts::prepare_rhs() {
  if (there != nullptr) return prepare_in_place();
  find_amplitude();
  measure_rhs();
}

void Solver::Parts::find_amplitude() {
  std::array<double, 2> const mine{largest(rhs), largest(fields[0])};
  amplitude = 0;
  guess_is_finite = true;
  for (auto const& [of_b, of_guess] : group().all_gather(mine)) {
    amplitude = std::max(amplitude, of_b);
    guess_is_finite = guess_is_finite && std::isfinite(of_guess);
  }
}

void Solver::Parts::measure_rhs() {
  state = State{};
  host::Engine& e = *engine;
  measure(e, rhs.data());
  null_space_removed = underflowed_norm = 0;
  if (options.null_space_constant && state.status == Status::running &&
      std::isfinite(state.value[ScalarIndex::measured])) {
    null_space_removed = std::abs(take_mean(rhs)) * std::sqrt(static_cast<double>(matrix.global_rows()));
    measure(e, rhs.data());
    if (amplitude > 0 && state.rr < std::numeric_limits<double>::min()) forget_rounding_of_mean();
  }
  b_square = state.rr;
}

// The square of what the projection has left underflows: where that is rounding, b was constant, and zero is its
// projection. By sums of the run alone, as all that comes behind the first of them.
void Solver::Parts::forget_rounding_of_mean() {
  int const exponent = std::ilogb(amplitude);
  double const left = measure_scaled(exponent), removed = std::scalbn(null_space_removed, -exponent);
  if (left <= rounding_of_mean * removed) {
    std::fill(rhs.begin(), rhs.end(), 0.0);
    amplitude = 0;
  }
  state.rr = 0;  // as it underflows
}

// |b| over 2^exponent.
double Solver::Parts::measure_scaled(int exponent) {
  std::vector<double> scaled(rhs.begin(), rhs.end());
  for (double& value : scaled) value = std::scalbn(value, -exponent);
  measure(*engine, scaled.data());
  return std::sqrt(state.rr);
}

// b is below atol: x = 0 will do, and leaves b, whose norm no text can tell. Of one in a GPU's memory its bound is known.
void Solver::Parts::end_below_atol() {
  if (there != nullptr) {
    underflowed_norm = std::min(amplitude * std::sqrt(static_cast<double>(matrix.global_rows())),
                                std::sqrt(std::numeric_limits<double>::min()));
  } else {
    int const exponent = std::ilogb(amplitude);
    underflowed_norm = std::scalbn(measure_scaled(exponent), exponent);
  }
  b_square = 0;
  clear_answer();
}

}  // namespace hostless
