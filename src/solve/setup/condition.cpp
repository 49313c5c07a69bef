#include "solve/setup/condition.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace hostless {
namespace {

// The matrix is L D L' with 1 / alpha in D and the roots of beta in L. Its pivots less `shift` are
// (1 + alpha s) / alpha with this recurrence for s (stationary qd, Parlett and Dhillon), which keeps the
// small eigenvalues to their last digits where entries that were added up would have lost them. As many
// pivots are negative as eigenvalues lie below the shift (Sylvester). Ends where `found` says so of a pivot's
// sign.
template <class Found>
bool any_pivot(std::span<StepRecord const> steps, double shift, Found const& found) {
  double s = 0, pivot = 1;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    s = (k == 0 || steps[k].beta == 0 ? 0.0 : steps[k].beta * s / pivot) - shift;
    pivot = 1 + steps[k].alpha * s;
    if (found(pivot)) return true;
  }
  return false;
}

bool any_below(std::span<StepRecord const> steps, double shift) {
  return any_pivot(steps, shift, [](double pivot) { return !(pivot > 0); });
}
bool all_below(std::span<StepRecord const> steps, double shift) {
  return !any_pivot(steps, shift, [](double pivot) { return !(pivot < 0); });
}

}  // namespace

bool NullDirections::add(StepRecord const& step) {
  if (!(step.alpha > 0)) return false;
  square_ = 1 + step.beta * square_;
  largest_ = std::max(largest_, 1 / step.alpha);
  return 1 / step.alpha < std::numeric_limits<double>::epsilon() * largest_ * square_;
}

std::vector<StepRecord> trusted_steps(std::span<StepRecord const> steps, double true_rr) {
  std::vector<StepRecord> trusted;
  for (std::size_t first = 0, next = 0; first < steps.size(); first = next) {
    for (next = first + 1; next < steps.size() && steps[next].beta != 0;) ++next;
    double const true_residual = next < steps.size() ? steps[next].true_rr : true_rr;
    double const gap = std::abs(std::sqrt(true_residual) - std::sqrt(steps[next - 1].rr));
    double before = steps[first].true_rr;  // the residual that a step was made from
    for (std::size_t k = first; k < next && !(std::sqrt(before) < 10 * gap); ++k) {
      trusted.push_back(steps[k]);
      before = steps[k].rr;
    }
  }
  return trusted;
}

std::optional<RitzValues> extreme_ritz_values(std::span<StepRecord const> steps) {
  constexpr double digits = 1e-6;
  double least = std::numeric_limits<double>::infinity(), most = 0, bound = 0, before = 0;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    auto const beside = [&](std::size_t j) {  // between j - 1 and j
      return j == 0 || j == steps.size() ? 0.0 : std::sqrt(steps[j].beta) / steps[j - 1].alpha;
    };
    double const alpha = steps[k].alpha, beta = k == 0 ? 0.0 : steps[k].beta;
    double const diagonal = 1 / alpha + (beta > 0 ? beta / before : 0.0);
    double const disc = diagonal + beside(k) + beside(k + 1);  // Gershgorin
    if (!(alpha > 0) || !(beta >= 0) || !std::isfinite(disc)) return {};
    least = std::min(least, diagonal);
    most = std::max(most, diagonal);
    bound = std::max(bound, disc);
    before = alpha;
  }
  if (steps.empty()) return {};
  double low = least, high = least;
  while (low > 0 && any_below(steps, low)) high = std::exchange(low, low / 16);
  if (!(low > 0)) return {};  // beyond what doubles hold
  while (high > low * (1 + digits)) {
    double const middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;  // denormal: they have no digits left
    (any_below(steps, middle) ? high : low) = middle;
  }
  RitzValues values{high, bound};
  low = most, high = bound;
  while (high > low * (1 + digits)) {
    double const middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;  // denormal: they have no digits left
    (all_below(steps, middle) ? high : low) = middle;
  }
  values.largest = high;
  return values;
}

}  // namespace hostless
