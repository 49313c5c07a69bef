#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/counted.hpp"
#include "solve/methods/bodies.impl.hpp"
#include "solve/methods/method_vectors.hpp"
#include "solve/setup/manufactured.hpp"
#include "solve/solver_parts.hpp"

namespace hostless {
namespace {

// rtol may be infinite, which is no number times zero.
double target_of(SolveOptions const& options, double b_norm) {
  return std::max(b_norm > 0 ? options.rtol * b_norm : 0, options.atol);
}

// Whether a Chebyshev polynomial may have such a bound of the eigenvalues.
bool fits(double upper) { return upper > 0 && std::isfinite(upper) && std::isfinite(1 / upper); }

}  // namespace

// Only the first wish counts: it is polled again until all ranks have heard of it. True.
bool Solver::Parts::stop_for(std::string const& reason) {
  if (why_stopped.empty()) why_stopped = reason;
  return true;
}

// y = A x outside a text: set-up work, with a collective of its own so that a lost peer is an error.
void Solver::Parts::multiply(double const* x, double* y) {
  if (only_on_gpu()) gpu->refresh_values();
  std::copy_n(x, rhs.size(), gathered);
  group().barrier();
  exchange->start();
  if (!exchange->wait()) throw Error(ErrorCode::peer_lost, "a rank was lost while vectors were exchanged.");
  if (engine->function) {
    engine->function(gathered, y);
  } else {
    matrix.local()->multiply(gathered, y);
  }
  group().barrier();
}

// Whether its numbers are of no use: an inverse of a denormal entry, a bound of eigenvalues without one. Collective.
bool Solver::Parts::preconditioner_is_unfit() {
  if (bad_row) return bad_row->finite;
  auto const stored = stored_preconditioner();
  bool const overflows =
      std::any_of(stored.begin(), stored.end(), [](double one) { return !std::isfinite(one); });
  return group().any(overflows) || (is_chebyshev() && std::isfinite(bound.upper) && !fits(bound.upper));
}

// Endings that no iteration is needed for.
bool Solver::Parts::easy_ending(Result& result) {
  auto end = [&](Status status, std::string text) {
    result.status = status;
    result.message = std::move(text);
    return true;
  };
  if (state.status != Status::running)
    return end(state.status, "a rank was lost before the first iteration.");
  if (!std::isfinite(amplitude)) return end(Status::not_finite, "the right-hand side holds NaN or infinity.");
  if (!std::isfinite(b_square)) {
    return end(Status::not_finite,
               fmt::format("|b|^2 overflows: entries of b reach {:.3e}. Scale the system.", amplitude));
  }
  // A x need not see it: columns may be empty. Where b = 0, or a checkpoint goes on, nobody reads the guess.
  if (b_square > 0 && !guess_is_finite && options.resume_file.empty())
    return end(Status::not_finite, "the guess holds NaN or infinity.");
  bool const underflows = amplitude > 0 && b_square < std::numeric_limits<double>::min();
  if (underflows && options.atol * options.atol >= std::numeric_limits<double>::min()) {
    end_below_atol();
    if (state.status != Status::running)
      return end(state.status, "a rank was lost before the first iteration.");
    return end(Status::converged, "");
  }
  if (underflows)
    return end(
        Status::breakdown,
        fmt::format("|b|^2 underflows: entries of b are at most {:.3e}. Scale the system.", amplitude));
  // Squares of residuals near such a target, which may be 0, would look like zero, and zero like an end.
  double const target = target_of(options, std::sqrt(b_square));
  double const smallest = std::numeric_limits<double>::min(), eps = std::numeric_limits<double>::epsilon();
  if (b_square > 0 && b_square < smallest / eps / eps && target < std::sqrt(smallest)) {
    return end(Status::breakdown,
               fmt::format("the square of the target {:.3e} underflows: entries of b are at most {:.3e}. "
                           "Scale the system.",
                           target, amplitude));
  }
  if (b_square == 0 && preconditioner_is_unfit()) {  // M is not needed
    clear_answer();
    return end(Status::converged, "");
  }
  if (bad_row) {
    char const* const what = simple_kind() == PreconditionerKind::jacobi ? "entry" : "block";
    if (!bad_row->finite)
      return end(Status::not_finite,
                 fmt::format("the diagonal {} of row {} holds NaN or infinity.", what, bad_row->row + 1));
    if (method().demands == Demands::nothing)
      return end(Status::breakdown,
                 name_empty_row(fmt::format("the diagonal {} of row {} has no inverse. Try "
                                            "preconditioner none.",
                                            what, bad_row->row + 1)));
    if (method().demands == Demands::symmetric)
      return end(
          Status::indefinite_preconditioner,
          name_empty_row(fmt::format("the diagonal {} of row {} is not positive, as {} needs M to be. "
                                     "Try preconditioner jacobi, which takes absolute values, or none.",
                                     what, bad_row->row + 1, name(options.method))));
    return end(Status::indefinite_preconditioner,
               name_empty_row(fmt::format("the diagonal {} of row {} is not positive: A is not positive "
                                          "definite. Try method minres, whose jacobi takes absolute values, "
                                          "or bicgstab{}.",
                                          what, bad_row->row + 1,
                                          bad_row->regular ? "" : " with preconditioner none")));
  }
  if (is_chebyshev() && !fits(bound.upper)) {
    Status const status = !std::isfinite(bound.upper) ? Status::not_finite
                          : bound.upper < 0           ? Status::indefinite_matrix
                                                      : Status::breakdown;
    return end(status,
               fmt::format("the largest eigenvalue that a Lanczos run found is {} (a Chebyshev polynomial "
                           "needs a positive bound).",
                           bound.found));
  }
  return false;
}

void Solver::Parts::start_state() {
  state = first_state(options, bound.upper);
  state.target = target_of(options, std::sqrt(b_square));
  // The recurrence falls for ever, the true residual stays above about 1e-16 |b|. Steps behind that lose x: where A is
  // singular they follow what rounding has left outside of its range (20 x 20 free cells, asked at 2^-60 |b|: cg ended
  // with 4e-8 |b| and bicgstab with 1e-13 |b|, having had 1e-16 |b|), and regular ones too ended with 2 to 7 times as much.
  state.resolved_at = std::numeric_limits<double>::epsilon() * std::sqrt(b_square);
  state.propose_at = std::max(state.target, state.resolved_at);
  state.limit = limit();
  state.projects = options.null_space_constant;
  state.history = history.data();
  state.history_size = static_cast<std::int64_t>(history.size());
  if (b_square == 0) clear_answer();  // x = 0 solves it exactly, whatever the guess was
}

void Solver::Parts::clear_answer() {
  if (there != nullptr) return gpu->clear_solution();
  std::fill(fields[0].begin(), fields[0].end(), 0.0);
}

// All vectors that an iteration reads before it writes them.
std::vector<std::span<double>> Solver::Parts::saved() {
  std::vector<std::span<double>> all(fields.begin(), fields.end());
  all.emplace_back(gathered, rhs.size());
  return all;
}

void Solver::Parts::run_on_gpu() {
  auto const progress = [this](std::int64_t iteration, double rr, int) {
    return !is_repeating && options.callback && options.callback({iteration, std::sqrt(rr), state.target}) &&
           stop_for("the callback asked it to stop");
  };
  gpu->refresh(preconditioner_data, preconditioner_version);
  if (there != nullptr) return gpu->run(state, history, run.stop_requested, progress);
  auto const vectors = saved();
  gpu->run(state, rhs, vectors, history, run.stop_requested, progress);
}

// Which run of the GPU is the fastest, with the preconditioner in place; nothing where the run is known.
void Solver::Parts::tune() {
  if (!gpu || !gpu->wants_tuning() || bad_row || (is_chebyshev() && !fits(bound.upper))) return;
  gpu->refresh(preconditioner_data, preconditioner_version);
  gpu->tune(first_state(options, bound.upper), static_cast<int>(fields.size()) + 1,
            options.run.stop_requested);
}

void Solver::Parts::run_once() {
  if (gpu) return run_on_gpu();
  std::vector<double*> vectors;
  for (std::span<double> const one : saved()) vectors.push_back(one.data());
  MethodInput<AnyPreconditioner> input{
      preconditioner(), rhs.data(), vectors.data(), {}, static_cast<int>(vectors.size())};
  if (is_chebyshev())
    input.polynomial = ChebyshevNumbers::of(options.chebyshev.degree, options.chebyshev.ratio);
  if (options.preconditioner_function) input.function = &options.preconditioner_function;
  input.apart = apart.data();
  run_method(*engine, options.run.kind, options.method, variant_of(options), input);
}

void Solver::Parts::iterate_to_the_end(Result& result) {
  if (options.null_space_constant) {
    iterate_and_project(result);
  } else {
    iterate(result);
  }
}

void Solver::Parts::iterate(Result& result) {
  bool const checkpoints = !options.checkpoint_file.empty();
  state.pauses_at_end = checkpoints && !gpu;  // a GPU's launches pause for reasons of their own
  for (;;) {
    if (checkpoints)
      state.pause_at = (state.iteration / options.checkpoint_every + 1) * options.checkpoint_every;
    run_once();
    if (state.awaits_projection()) {
      project_residual();
      if (state.status != Status::running) return;
      continue;
    }
    if (state.status != Status::paused) return;
    save(result);
    state.status = Status::running;
    if (state.pauses_at_end && state.must_end()) ask_for_true_residual(state);
  }
}

// What is counted before a solve, for the difference in the end.
Solver::Parts::Counted Solver::Parts::begin_solve(Result& result) {
  result.time_setup_s = time_setup_s;
  begun = Clock::now();
  why_stopped.clear();
  null_directions.reset();
  if (options.null_space_constant && method().makes_lanczos_steps) null_directions.emplace();
  saw_null_direction = false;
  saved_at = -1;
  for (int c = 0; c < columns(); ++c) {  // nothing is known of this one yet
    column(c).state = State{};
    column(c).rounded_from = column(c).left_behind = -1;
    column(c).went_back_to = -1;
  }
  engine->forget_observed();
  exchange->lower();  // what stopped the solve before does not stop this one
  Counted const before{engine->times, gpu ? gpu->cost() : gpu::Cost{}, exchange->waited_s()};
  refresh();
  return before;
}

void Solver::Parts::count_gpu(Result& result, gpu::Cost const& before) const {
  gpu::Cost const now = gpu->cost();
  result.time_device_s = now.device_s - before.device_s;
  result.launches = now.launches - before.launches;
  result.device_bytes = gpu->device_bytes();
  result.device_peak_bytes = gpu->peak_bytes();
  auto const vectors = columns() * (static_cast<std::int64_t>(fields.size()) + 2);  // the gathered one, and b
  bool const both = options.matrix_precision == MatrixPrecision::fp32;  // the rounded values besides
  result.device_model_bytes = matrix_bytes(false) + (both ? matrix_bytes(false) - matrix_bytes(true) : 0) +
                              (8 * vectors + preconditioner_bytes()) * matrix.owned();
  write_profile(result);
}

// An ending that took no iteration; that of x = 0 leaves b.
void Solver::Parts::finish_easily(Result& result) const {
  bool const is_solved = result.status == Status::converged;
  double const unknown = std::numeric_limits<double>::quiet_NaN();
  result.rhs_norm = is_solved ? underflowed_norm : std::sqrt(b_square);
  result.true_residual = is_solved ? underflowed_norm : unknown;
  result.true_relative_residual = !is_solved ? unknown : underflowed_norm > 0 ? 1 : 0;
  if (is_solved) result.residual_history = {underflowed_norm};
  result.recurrence_relative_residual = result.true_relative_residual;
  result.residual_gap = is_solved ? 0 : unknown;
}

// What all ranks have together, after the last word of the solve.
void Solver::Parts::finish_together(Result& result) const {
  if (result.status == Status::peer_lost) return;
  IterationTraffic const traffic = traffic_of(options, matrix.sweep().tiling.block);
  bool const is_rounded = options.matrix_precision == MatrixPrecision::fp32;
  std::int64_t made = 0;  // by all columns, some of which end before others
  for (Result const& one : result.columns) made += one.iterations;
  double const at_work = result.columns.empty() || result.iterations == 0
                             ? columns()
                             : static_cast<double>(made) / static_cast<double>(result.iterations);
  auto const vectors = at_work * static_cast<double>(traffic.vector_bytes * matrix.owned());
  result.bytes_per_iteration = group().sum(traffic.products * matrix_bytes(is_rounded) +
                                           static_cast<std::int64_t>(std::llround(vectors)));
  result.halo_bytes_per_iteration =
      group().sum(traffic.exchanges * matrix.plan().items_sent() * 8 * columns());
  result.iteration_times = of_all_ranks(group(), iteration_times(result));
  result.time_solve_s = group().max(result.time_solve_s);
}

Result Solver::Parts::solve() {
  if (columns() > 1) return solve_columns();
  Result result;
  Counted const before = begin_solve(result);
  prepare_rhs();
  bool const easy = easy_ending(result);
  if (!easy) {
    check_checkpoint_file();
    if (!options.resume_file.empty() || !options.checkpoint_file.empty()) identify();
    start_state();
    if (!options.resume_file.empty()) {
      resume();
    } else if (options.null_space_constant) {
      project_solution();  // what a guess has of the null space only drowns the rest in rounding
    }
    result.resumed_at = state.iteration;
    keep_guess();
    iterate_to_the_end(result);
    find_true_residual();
    go_back_to_best(result);
    give_guess_back();
    round_answer();
    require_finite_answer();
    result.status = state.status;
    if (state.status != Status::peer_lost) give_answer();  // before products overwrite what is there
    if (gpu) count_gpu(result, before.gpu);
    result.time_solve_s = host::Engine::seconds_since(begun);
    finish(result);
    finish_times(result, before);
    result.message = advice(result) + word_of_guess() + word_of_checkpoint(result);
  } else {
    if (result.status != Status::peer_lost && options.null_space_constant) project_solution();
    if (result.status != Status::peer_lost && state.status == Status::peer_lost)
      throw Error(ErrorCode::peer_lost, "a rank was lost before the first iteration.");
    if (result.status != Status::peer_lost) give_answer();
    finish_easily(result);
  }
  describe(result);
  if (easy) result.time_solve_s = host::Engine::seconds_since(begun);
  finish_together(result);
  return result;
}

Solver::Solver(Matrix const& matrix, SolveOptions options) {
  auto const begin = Clock::now();
  parts_ = std::make_unique<Parts>(matrix, std::move(options));
  parts_->allocate();
  parts_->refresh();
  parts_->tune();
  parts_->time_setup_s = host::Engine::seconds_since(begin);
}
Solver::Solver(Solver&&) noexcept = default;
Solver::~Solver() = default;

void Solver::set_tolerances(double rtol, double atol) {
  check_tolerances(rtol, atol);
  parts_->options.rtol = rtol, parts_->options.atol = atol;
}
void Solver::set_time_spent(double seconds) { parts_->time_spent_s = seconds; }
void Solver::round_answers(bool to_fp32) { parts_->rounds_to_fp32 = to_fp32; }
std::span<double> Solver::b(int column) { return parts_->column(column).rhs; }
std::span<double> Solver::x(int column) { return parts_->column(column).fields[0]; }

Result Solver::Parts::solve_or_lose() {
  try {
    return solve();
  } catch (Error const& e) {
    if (e.code() != ErrorCode::peer_lost) throw;
    return lost_outside(e.what());
  }
}

// A rank was lost between the texts or behind them: there is no true residual, and of each right-hand side
// what its iterations have left.
Result Solver::Parts::lost_outside(std::string const& why) {
  auto const lose = [&](Result& result) {
    result.status = state.status = Status::peer_lost;
    result.message = why;
    state.true_rr = result.true_residual = result.true_relative_residual =
        result.recurrence_relative_residual = result.residual_gap = std::numeric_limits<double>::quiet_NaN();
    if (state.begun) finish(result);
  };
  Result whole;
  lose(whole);
  if (columns() > 1) {
    whole.columns.resize(static_cast<std::size_t>(columns()));
    for (int c = 0; c < columns(); ++c)
      on_column(c, [&] { lose(whole.columns[static_cast<std::size_t>(c)]); });
    tell_whole(whole, std::vector<Result>(whole.columns));
    whole.message = why;
  }
  describe(whole);
  return whole;
}
Result Solver::solve() { return parts_->solve_or_lose(); }

Result Solver::solve(std::span<double const> b, std::span<double> x) {
  Matrix const& m = parts_->matrix;
  int const columns = parts_->columns();
  auto const rows = static_cast<std::size_t>(m.last_row() - m.first_row());
  parts_->group().together([&] {
    auto const all = rows * static_cast<std::size_t>(columns);
    if (b.size() == all && x.size() == all) return;
    throw Error(ErrorCode::usage,
                fmt::format("b has {} and x {} (this rank has {}{}).", b.size(),
                            counted(x.size(), "entry", "entries"), counted(rows, "row"),
                            columns > 1 ? fmt::format(", of {}", counted(columns, "column")) : ""));
  });
  auto const of = [&](auto all, int column) {
    return all.subspan(static_cast<std::size_t>(column) * rows, rows);
  };
  for (int c = 0; c < columns; ++c) {
    m.to_local(of(b, c), this->b(c));
    m.to_local(of(x, c), this->x(c));
  }
  Result result = solve();
  if (result.status == Status::peer_lost) return result;
  for (int c = 0; c < columns; ++c) m.from_local(this->x(c), of(x, c));
  return result;
}

void Solver::multiply(std::span<double const> x, std::span<double> y) {
  parts_->group().together([&] {
    auto const owned = static_cast<std::size_t>(parts_->matrix.owned());
    if (x.size() == owned && y.size() == owned) return;
    throw Error(ErrorCode::usage,
                fmt::format("x has {} and y {} (this rank works on {}). Pass vectors of that "
                            "length.",
                            x.size(), counted(y.size(), "entry", "entries"), counted(owned, "row")));
  });
  parts_->multiply(x.data(), y.data());
}

void Solver::manufacture(std::uint64_t seed) {
  Parts& p = *parts_;
  for (int c = 0; c < p.columns(); ++c) {
    p.on_column(c, [&] { p.manufacture(seed + static_cast<std::uint64_t>(c)); });
  }
}
double Solver::manufactured_error(std::uint64_t seed) const {
  Parts& p = *parts_;
  double largest = 0;
  for (int c = 0; c < p.columns(); ++c) {
    double const error =
        p.on_column(c, [&] { return p.manufactured_error(seed + static_cast<std::uint64_t>(c)); });
    if (std::isnan(error)) return error;  // on all ranks
    largest = std::max(largest, error);
  }
  return largest;
}

void Solver::Parts::manufacture(std::uint64_t seed) {
  double const norm = manufactured_norm(matrix, seed);
  std::span<double> const x = fields[0];
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = random_entry(seed, matrix.global_row(static_cast<std::int64_t>(i))) / norm;
  multiply(x.data(), rhs.data());
  std::fill(x.begin(), x.end(), 0.0);
}

double Solver::Parts::manufactured_error(std::uint64_t seed) const {
  double const norm = manufactured_norm(matrix, seed);
  std::span<double const> const x = fields[0];
  double mean = 0;
  if (options.null_space_constant) mean = manufactured_mean(matrix, seed) / norm;
  double square = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double const error =
        x[i] - (random_entry(seed, matrix.global_row(static_cast<std::int64_t>(i))) / norm - mean);
    square += error * error;
  }
  return std::sqrt(group().sum(square));
}

}  // namespace hostless
