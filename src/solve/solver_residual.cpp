// |b - A x| of the x that a solve hands back.
#include <algorithm>
#include <cmath>
#include <limits>

#include "solve/measure.hpp"
#include "solve/methods/method_vectors.hpp"
#include "solve/solver_parts.hpp"

namespace hostless {

// Endings inside an iteration leave the true residual of an older x behind; a lost peer leaves none, to no
// right-hand side beside it either (is_lost).
void Solver::Parts::find_true_residual(bool is_lost) {
  switch (state.status) {
    case Status::indefinite_matrix:
    case Status::indefinite_preconditioner:
    case Status::not_finite:
    case Status::breakdown:
      if (!is_lost) break;
      [[fallthrough]];
    case Status::peer_lost:
      state.true_rr = std::numeric_limits<double>::quiet_NaN();
      return;
    default:
      return;  // judged from this x
  }
  State const ended = state;
  double const rr = measure_true_residual();
  state = ended;
  state.true_rr = rr;
  state.recurrence_rr = ended.wants_true_residual ? ended.recurrence_rr : ended.rr;
}

// |b - A x|^2 of the x that is there, in the plan's order; the state is that of the sum. A wish to stop ends
// nothing here; NaN where a rank was lost.
double Solver::Parts::measure_true_residual() {
  if (there != nullptr) return true_residual_in_place();
  std::vector<double> residual(rhs.size());
  multiply(fields[0].data(), residual.data());
  for (std::size_t i = 0; i < residual.size(); ++i) residual[i] = rhs[i] - residual[i];
  state = State{};
  measure(*engine, residual.data());
  return state.status == Status::peer_lost ? std::numeric_limits<double>::quiet_NaN() : state.rr;
}

// Residuals of a method for any matrix may only grow on their way, and nothing else that it makes smaller says that x has
// become better: then the guess is the best x that is known. So it is where conjugate gradients have met null vectors.
// A checkpoint has none.
void Solver::Parts::keep_guess() {
  keeps_guess = method().demands != Demands::symmetric && options.resume_file.empty();
  guess.clear();
  if (!keeps_guess || there != nullptr) return;
  std::span<double const> const x = fields[0];
  if (std::any_of(x.begin(), x.end(), [](double one) { return one != 0; })) guess.assign(x.begin(), x.end());
}

// x is the guess again, where it lies in the host's memory.
void Solver::Parts::take_guess() {
  if (guess.empty()) return clear_answer();
  std::copy(guess.begin(), guess.end(), fields[0].begin());
}

// The iteration before what has spoilt x since, and -1 where nothing has. A recurrence that has followed null vectors of
// A, or what rounding has left of b beside its range, has the least |r| there; restarts compare true residuals, and the |r|
// of an ill-conditioned system may be far below them without a better x.
std::int64_t Solver::Parts::best_iteration(std::int64_t first_null) const {
  constexpr double spoilt = 100;
  std::int64_t const made = first_null < 0 ? state.iteration + 1 : first_null;
  auto const kept = std::min<std::int64_t>(made, static_cast<std::int64_t>(history.size()));
  auto const steps = history.first(static_cast<std::size_t>(kept));
  bool const by_recurrence = first_null >= 0 || state.status != Status::stagnated;
  auto const found = by_recurrence
                         ? std::min_element(steps.begin(), steps.end(),
                                            [](auto const& a, auto const& b) { return a.rr < b.rr; })
                         : std::find_if(steps.begin(), steps.end(), [&](auto const& step) {
                             return step.true_rr == state.best_true_residual;
                           });
  if (found == steps.end()) return -1;
  double const least = by_recurrence ? found->rr : found->true_rr;
  if (std::sqrt(state.true_rr) <= spoilt * std::sqrt(least)) return -1;
  return found - steps.begin() - (by_recurrence ? 0 : 1);
}

// Makes the same steps again, as far as to the best x that is known of: where it ended x is of no use, and the end says
// nothing of A. Collective.
void Solver::Parts::go_back_to_best(Result& result) {
  constexpr double resolved = 1e-12;  // of |b|: what comes behind it is rounding
  std::int64_t const first_null = first_null_direction();
  bool const has_grown = first_null >= 0 && state.true_rr > state.first_rr;
  bool const may =
      state.status == Status::indefinite_matrix || state.status == Status::stagnated ||
      (has_grown && (state.status == Status::diverged || state.status == Status::iteration_limit));
  if (!may || !keeps_guess || !method().makes_lanczos_steps || there != nullptr ||
      !options.checkpoint_file.empty())
    return;
  std::int64_t const best = best_iteration(first_null);
  if (best < 1) return;  // the guess is what give_guess_back has
  State const ended = state;
  std::vector<double> const ended_at(fields[0].begin(), fields[0].end());
  take_guess();
  start_state();
  state.limit = best;
  exchange->lower();  // what stopped it there does not stop it here
  is_repeating = true;
  iterate_to_the_end(result);
  is_repeating = false;
  if (state.status == Status::peer_lost || state.status == Status::converged) return;
  State const there_again = state;
  state = ended;
  if (!(there_again.true_rr < ended.true_rr) && !std::isnan(ended.true_rr)) {
    std::copy(ended_at.begin(), ended_at.end(), fields[0].begin());
    return;
  }
  went_back_to = there_again.iteration;
  state.true_rr = there_again.true_rr;
  state.recurrence_rr = history[static_cast<std::size_t>(went_back_to)].rr;
  bool const was_rounding = std::sqrt(state.recurrence_rr) <= resolved * std::sqrt(b_square);
  bool const says_else = state.status == Status::indefinite_matrix || state.status == Status::iteration_limit;
  if (says_else && (first_null >= 0 || was_rounding)) state.status = Status::stagnated;
}

// Than an x with a larger residual. Conjugate gradients make errors smaller whose residuals grow, where A is definite.
bool Solver::Parts::guess_is_better() const {
  if (method().demands == Demands::nothing) return state.status != Status::iteration_limit;
  return state.status == Status::indefinite_matrix || first_null_direction() >= 0;
}

// Whoever asked for the end (`aborted`) has seen the x that is there, and whoever bounded the iterations may go on from
// it. All ranks together.
void Solver::Parts::give_guess_back() {
  bool const may = state.status == Status::iteration_limit || state.status == Status::stagnated ||
                   state.status == Status::diverged || state.status == Status::breakdown ||
                   state.status == Status::indefinite_matrix || state.status == Status::not_finite;
  if (!keeps_guess || !may || !std::isfinite(state.first_rr)) return;
  if (!is_answer_finite())
    state.true_rr = std::numeric_limits<double>::quiet_NaN();  // A may never read what is not
  if (state.true_rr <= state.first_rr) return;
  if (std::isfinite(state.true_rr) && !guess_is_better()) return;
  left_behind = std::sqrt(state.true_rr);
  went_back_to = -1;
  if (there != nullptr && there->guess) {
    group().together([&] { gpu->take_solution(*there->guess); });
  } else {
    take_guess();
  }
  state.true_rr = state.recurrence_rr = state.first_rr;
}

// An x that is handed back in fp32 is judged as it then is. Collective.
void Solver::Parts::round_answer() {
  bool const rounds = there != nullptr ? there->x.number == GpuArray::Number::fp32 : rounds_to_fp32;
  if (!rounds || state.status == Status::peer_lost) return;
  if (there != nullptr) {
    give_answer();
    group().together([&] { gpu->take_solution(there->x); });
  } else {
    for (double& one : fields[0]) one = static_cast<float>(one);
  }
  State const ended = state;
  double const rr = measure_true_residual();
  bool const is_lost = state.status == Status::peer_lost;
  state = ended;
  state.true_rr = rr;
  if (is_lost) {
    state.status = Status::peer_lost;
  } else if (!std::isfinite(rr) && std::isfinite(ended.true_rr)) {
    state.status = Status::not_finite;
    rounded_from = std::sqrt(ended.true_rr);
  } else if (state.status == Status::converged && !(std::sqrt(rr) <= state.target)) {
    state.status = Status::stagnated;
    rounded_from = std::sqrt(ended.true_rr);
  }
}

// Whether all entries of x are finite. Collective.
bool Solver::Parts::is_answer_finite() {
  bool finite = true;
  if (there != nullptr) {
    group().together([&] { finite = std::isfinite(gpu->largest_solution()); });
  } else {
    finite = std::all_of(fields[0].begin(), fields[0].end(), [](double one) { return std::isfinite(one); });
  }
  return !group().any(!finite);
}

// An entry of x that A never reads (its column is empty) is in no residual: what an iteration made of it must be looked
// at. Collective.
void Solver::Parts::require_finite_answer() {
  if (state.status == Status::peer_lost || state.status == Status::not_finite || is_answer_finite()) return;
  state.status = Status::not_finite;
  state.true_rr = std::numeric_limits<double>::quiet_NaN();
}

}  // namespace hostless
