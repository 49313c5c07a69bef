// Several right-hand sides at once: each is a solve of its own in all but the products, the messages and the
// sums that they share.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/counted.hpp"
#include "hostless/machine/topology.hpp"
#include "solve/methods/method_vectors.hpp"
#include "solve/solver_parts.hpp"

namespace hostless {
namespace {

/// Vectors that lie a multiple of this apart fall onto the same lines of a cache.
constexpr std::int64_t cache_period = 512;

constexpr std::int64_t line = 8;  // doubles of a cache line

// So far apart do the vectors of two columns lie: whole cache lines, and not all of them onto the same ones.
std::int64_t stride_of(std::int64_t vector_with_ghosts) {
  std::int64_t const stride = (vector_with_ghosts + line - 1) / line * line;
  return stride % cache_period == 0 ? stride + line : stride;
}

// Of several endings the one that the whole is told by.
bool says_more(Result const& one, Result const& other) {
  bool const converged = one.status == Status::converged;
  if (converged != (other.status == Status::converged)) return !converged;
  return converged && one.true_relative_residual > other.true_relative_residual;
}

}  // namespace

void Solver::Parts::check_columns() const {
  auto refuse = [&](char const* what, char const* why) {
    throw Error(ErrorCode::usage,
                fmt::format("{} with {} at once is refused ({}). Solve for them one by one.", what,
                            counted(options.rhs_columns, "right-hand side"), why));
  };
  if (options.rhs_columns < 1 || options.rhs_columns > most_columns)
    throw Error(ErrorCode::usage, fmt::format("{} at once (it is from 1 to {}).",
                                              counted(options.rhs_columns, "right-hand side"), most_columns));
  if (options.rhs_columns == 1) return;
  if (options.preconditioner == PreconditionerKind::function)
    refuse("a preconditioner function", "it is one of a single vector");
  if (!options.checkpoint_file.empty() || !options.resume_file.empty())
    refuse("a checkpoint", "a file is of one solve");
  if (options.null_space_constant) refuse("a null space", "each is projected where it pauses");
}

// Where there is one column its vectors are as long as they must be.
void Solver::Parts::allocate_columns() {
  ExchangePlan const& plan = matrix.plan();
  auto const all = static_cast<std::size_t>(options.rhs_columns);
  auto const owned = static_cast<std::size_t>(plan.owned);
  auto const with_ghosts = static_cast<std::size_t>(plan.owned + plan.ghosts);
  stride = all == 1 ? 0 : stride_of(plan.owned + plan.ghosts);
  std::size_t const before = (all - 1) * static_cast<std::size_t>(stride);  // the last column
  // Owned rows begin a cache line in this vector too.
  auto const shift = static_cast<std::size_t>((line - plan.ghosts_below % line) % line);
  vectors_with_ghosts->assign(shift + before + with_ghosts, 0.0);
  rhs_memory.assign(before + owned, 0.0);
  field_memory.resize(static_cast<std::size_t>(fields_of(options)));
  for (auto& field : field_memory) field.assign(before + owned, 0.0);
  others.resize(all - 1);
  auto const steps = static_cast<std::size_t>(std::min(limit(), most_history)) + 1;
  for (std::size_t c = 0; c < all; ++c) {
    SolveColumn& one = column(static_cast<int>(c));
    std::size_t const first = c * static_cast<std::size_t>(stride);
    one.gathered = vectors_with_ghosts->data() + shift + first + plan.ghosts_below;
    one.rhs = std::span(rhs_memory).subspan(first, owned);
    for (auto& field : field_memory) one.fields.push_back(std::span(field).subspan(first, owned));
    one.history_memory.reset(new StepRecord[steps]);
    one.history = {one.history_memory.get(), steps};
    one.history[0] = {};  // all that is known where a rank is lost before the first true residual
  }
}

// The ghosts of all columns in one message a neighbour, their sums in one message too.
std::unique_ptr<Exchange> Solver::Parts::bind_exchange() {
  std::vector<Field> all;
  for (int c = 0; c < columns(); ++c) all.push_back(Field::around(column(c).gathered, sizeof(double)));
  ExchangeOptions wanted{options.limits, vectors_with_ghosts, options.reduction};
  wanted.sum_width = host::Engine::widest_sum * columns();
  return std::make_unique<Exchange>(matrix.transport(), matrix.plan(), all, wanted);
}

void Solver::Parts::run_columns_on_gpu(std::span<State> states) {
  std::vector<gpu::GpuColumn> all;
  for (int c = 0; c < columns(); ++c) {
    SolveColumn const& one = column(c);
    auto fields_of_it = one.fields;
    fields_of_it.emplace_back(one.gathered, one.rhs.size());
    all.push_back({one.rhs, std::move(fields_of_it), one.history});
  }
  gpu->refresh(preconditioner_data, preconditioner_version);
  gpu->run_columns(states, all, run.stop_requested, [this](std::int64_t iteration, double rr, int number) {
    return options.callback &&
           options.callback({iteration, std::sqrt(rr), column(number).state.target, {}, number}) &&
           stop_for("the callback asked it to stop");
  });
}

// Whether the last cache, where it is known, has lost a field that a sweep filled when the sweep ends.
bool Solver::Parts::sweep_outgrows_caches() const {
  std::int64_t const cache = known_topology().last_level_bytes(),
                     vectors = columns() * stride * static_cast<std::int64_t>(sizeof(double));
  return cache > 0 && vectors + (matrix.local() == nullptr ? 0 : matrix.local()->bytes()) > cache;
}

// Those that have ended already stay closed.
void Solver::Parts::run_columns() {
  std::vector<State> states;
  for (int c = 0; c < columns(); ++c) states.push_back(column(c).state);
  struct Working {
    Working(host::Engine& e, std::span<State> all, std::int64_t apart, bool past_caches) : engine(e) {
      engine.work_on(all, apart, past_caches);
    }
    ~Working() { engine.work_on({&engine.state, 1}, 0); }
    Working(Working const&) = delete;
    Working& operator=(Working const&) = delete;
    host::Engine& engine;
  };
  if (gpu) {
    run_columns_on_gpu(states);
  } else {
    Working const working(*engine, states, stride, sweep_outgrows_caches());
    run_once();
  }
  for (int c = 0; c < columns(); ++c) column(c).state = states[static_cast<std::size_t>(c)];
}

Result Solver::Parts::solve_columns() {
  Result whole;
  Counted const before = begin_solve(whole);
  auto const count = static_cast<std::size_t>(columns());
  std::vector<Result> each(count);
  std::vector<char> is_easy(count);
  auto const on_each = [&](auto const& use) {
    for (std::size_t c = 0; c < count; ++c) on_column(static_cast<int>(c), [&] { use(each[c], is_easy[c]); });
  };
  // From the first measure on ranks meet in sums alone: one that was silent, and finds a sum complete when it
  // awakes, would else wait for others who have given it up.
  on_each([&](Result&, char) { find_amplitude(); });
  on_each([&](Result& result, char& easy) {
    measure_rhs();
    easy = easy_ending(result) ? 1 : 0;
    if (result.status == Status::peer_lost)
      throw Error(ErrorCode::peer_lost, result.message);  // who would come?
    if (easy != 0) {
      state.status = result.status;
    } else {
      start_state();
      keep_guess();
    }
  });
  run_columns();
  bool is_lost = false;
  for (int c = 0; c < columns(); ++c) is_lost = is_lost || column(c).state.status == Status::peer_lost;
  on_each([&](Result& result, char const& easy) {
    if (easy != 0) return finish_easily(result);
    find_true_residual(is_lost);
    if (!is_lost) give_guess_back();
    if (!is_lost) round_answer();
    if (!is_lost) require_finite_answer();
    result.status = state.status;
  });
  whole.time_solve_s = host::Engine::seconds_since(begun);
  if (gpu) count_gpu(whole, before.gpu);
  finish_times(whole, before);
  on_each([&](Result& result, char const& easy) {
    if (easy != 0) return;
    finish(result);
    if (!is_lost || state.status == Status::peer_lost)
      result.message = advice(result) + word_of_guess();  // which may ask all
  });
  tell_whole(whole, each);
  whole.columns = std::move(each);
  describe(whole);
  finish_together(whole);
  return whole;
}

// A rank that is lost is lost to all of them.
void Solver::Parts::tell_whole(Result& whole, std::vector<Result> const& each) {
  Result const* told = &each[0];
  std::int64_t iterations = 0;
  for (Result const& one : each) {
    if (says_more(one, *told)) told = &one;
    iterations = std::max(iterations, one.iterations);
  }
  for (Result const& one : each)
    if (one.status == Status::peer_lost) told = &one;
  auto const number = static_cast<std::size_t>(told - each.data());
  whole.status = told->status;
  whole.message =
      told->message.empty() ? std::string() : fmt::format("column {}: {}", number + 1, told->message);
  whole.iterations = iterations;
  whole.restarts = told->restarts;
  whole.replacements = told->replacements;
  whole.rhs_norm = told->rhs_norm;
  whole.true_residual = told->true_residual;
  whole.true_relative_residual = told->true_relative_residual;
  whole.recurrence_relative_residual = told->recurrence_relative_residual;
  whole.lost_by_rounding = told->lost_by_rounding;
  whole.residual_gap = told->residual_gap;
  whole.smallest_eigenvalue = told->smallest_eigenvalue;
  whole.largest_eigenvalue = told->largest_eigenvalue;
  whole.condition_estimate = told->condition_estimate;
  whole.residual_history = told->residual_history;
}

}  // namespace hostless
