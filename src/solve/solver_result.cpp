// What a solver says of a solve that has ended.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "hostless/solve/option_table.hpp"
#include "solve/methods/method_vectors.hpp"
#include "solve/setup/condition.hpp"
#include "solve/setup/precision.hpp"
#include "solve/solver_parts.hpp"

namespace hostless {

std::vector<std::string> Result::unwritten() const {
  std::vector<std::string> all;
  for (std::string const& problem : {checkpoint_problem, profile_problem})
    if (!problem.empty()) all.push_back(problem);
  return all;
}

void Solver::Parts::describe(Result& result) const {
  auto& c = result.choices;
  ExchangePlan const& plan = matrix.plan();
  c.emplace_back("method", name(options.method));
  c.emplace_back("preconditioner", name(options.preconditioner));
  if (simple_kind() == PreconditionerKind::block_jacobi && matrix.sweep().tiling.block == 1) {
    std::string const lost = matrix.lost_blocks();
    c.emplace_back("preconditioner_why",
                   "block-jacobi is jacobi here: " + (lost.empty() ? "the matrix has no blocks" : lost));
  }
  if (is_chebyshev()) describe_chebyshev(options.chebyshev, bound, state, c);
  c.emplace_back("transport", matrix.transport().capabilities().transport);
  c.emplace_back("run", name(gpu ? gpu->run_kind() : options.run.kind));
  c.emplace_back("lanes", std::to_string(options.run.threads));
  c.emplace_back("ranks", std::to_string(plan.ranks));
  c.emplace_back("nodes", std::to_string(plan.nodes.nodes()));
  c.emplace_back("route", name(plan.route));
  c.emplace_back("partition", matrix.why_partition());
  c.emplace_back("block", matrix.why_block());
  c.emplace_back("slices", std::to_string(matrix.sweep().tiling.slices));
  c.emplace_back("row_lanes", std::to_string(matrix.sweep().tiling.threads_per_row));
  if (matrix.local() != nullptr) {
    c.emplace_back("format", matrix.local()->describe());
    c.emplace_back("format_why", matrix.local()->why());
  }
  c.emplace_back("matrix_precision", describe_precision(options.matrix_precision, state, matrix_bytes(false),
                                                        matrix_bytes(true)));
  if (gpu) {
    c.emplace_back("gpu", gpu->device_name());
    if (std::string const text = gpu->describe_transport(); !text.empty())
      c.emplace_back("gpu_transport", text);
    c.emplace_back("gpu_run", gpu->describe());
    c.emplace_back("run_why", gpu->why_run());
    c.emplace_back("gpu_format", matrix.device_rows()->why);
    describe_storage(result);
  }
  bool const same = exchange->reduction() == options.reduction;
  c.emplace_back("reduction",
                 gpu && options.reduction == Reduction::fast ? fmt::format("fast ({})", gpu->describe_sums())
                 : same                                      ? name(options.reduction)
                        : "ordered (this transport has no library all-reduce; its gather is the fast way)");
  c.emplace_back("instruction_set", name(active_isa()));
  describe_settings(result);
}

// With what was left open resolved, so that the same settings make the same steps.
void Solver::Parts::describe_settings(Result& result) const {
  Choices understood;
  understood.solve = options;
  understood.solve.max_iterations = limit();
  understood.solve.divergence_limit = divergence_limit_of(options);
  understood.solve.run.kind = gpu ? gpu->run_kind() : options.run.kind;
  understood.has_run = true;
  for (Option const& one : all_options())
    if (one.of_solve && one.read != nullptr)
      result.settings.emplace_back(one.name, words_of(one.read(understood)));
}

// Of a sweep; rounded values take less only on a GPU.
std::int64_t Solver::Parts::matrix_bytes(bool is_rounded) const {
  if (gpu) {
    DeviceRows const& rows = *matrix.device_rows();
    return is_rounded ? rows.rounded_bytes_per_sweep() : rows.bytes_per_sweep();
  }
  return matrix.local() != nullptr ? matrix.local()->bytes_per_sweep() : 0;
}

// A file that cannot be written costs nobody the answer.
void Solver::Parts::write_profile(Result& result) const {
  if (options.run.profile_file.empty()) return;
  try {
    gpu->write_profile(options.run.profile_file);
  } catch (Error const& e) {
    if (e.code() == ErrorCode::peer_lost) throw;
    result.profile_problem = e.what();
  }
}

// Of this rank. The processor's phases follow each other: what is not waiting counts as computing.
IterationTimes Solver::Parts::iteration_times(Result const& result) const {
  if (gpu) return result.device_bytes > 0 ? gpu->iteration_times() : IterationTimes{};
  IterationTimes times;
  PhaseTimes const& all = result.times;
  times.iterations = result.iterations - result.resumed_at;
  if (times.iterations <= 0) return {};
  double const one = 1.0 / static_cast<double>(times.iterations);
  times.clock = IterationTimes::Clock::phases;
  times.iteration_s = one * result.time_solve_s;
  times.exposed_s = one * (all.sums_s + all.ghosts_s);
  times.computing_s = times.iteration_s - times.exposed_s;
  return times;
}

// Where the matrix has turned out not to be positive definite there is no such number.
void Solver::Parts::estimate_condition(Result& result) const {
  bool const is_known = state.status == Status::converged || state.status == Status::iteration_limit ||
                        state.status == Status::stagnated || state.status == Status::aborted;
  std::int64_t const reached = went_back_to < 0 ? state.iteration : went_back_to;
  auto const last = std::min<std::int64_t>(reached, static_cast<std::int64_t>(history.size()) - 1);
  std::int64_t const first = state.changed_at + 1;
  if (!is_known || first > last || !method().makes_lanczos_steps) return;
  auto const steps =
      history.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first + 1));
  bool const all = last == reached;  // the true residual is of the last step
  auto const values = extreme_ritz_values(
      trusted_steps(steps, all ? state.true_rr : std::numeric_limits<double>::quiet_NaN()));
  if (!values) return;
  result.smallest_eigenvalue = values->smallest;
  result.largest_eigenvalue = values->largest;
  result.condition_estimate = values->largest / values->smallest;
}

void Solver::Parts::finish(Result& result) {
  double const b_norm = std::sqrt(b_square);
  auto relative = [&](double norm) { return b_norm > 0 ? norm / b_norm : norm; };
  result.rhs_norm = b_norm;
  result.iterations = state.iteration;
  result.restarts = state.restarts;
  result.replacements = state.replacements;
  result.true_residual = std::sqrt(state.true_rr);
  result.true_relative_residual = relative(result.true_residual);
  result.recurrence_relative_residual =
      relative(std::sqrt(state.iteration == 0 ? state.true_rr : state.recurrence_rr));
  result.residual_gap = std::abs(result.true_relative_residual - result.recurrence_relative_residual);
  result.null_space_removed = null_space_removed;
  result.lost_by_rounding = rounded_from >= 0;
  estimate_condition(result);
  auto const kept = std::min<std::size_t>(history.size(), static_cast<std::size_t>(state.iteration) + 1);
  result.residual_history = norms(history.first(kept));
}

void Solver::Parts::finish_times(Result& result, Counted const& counted) const {
  PhaseTimes const &now = engine->times, &before = counted.times;
  result.times = {now.publish_s - before.publish_s, now.sweep_s - before.sweep_s, now.rows_s - before.rows_s,
                  now.sums_s - before.sums_s, now.ghosts_s - before.ghosts_s};
  result.waited_s = exchange->waited_s() - counted.waited_s;
}

}  // namespace hostless
