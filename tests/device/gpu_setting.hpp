#pragma once
// What every test needs that solves on a GPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "environment.hpp"
#include "outcome.hpp"
#include "solve/gpu_solver/gpu_loader.hpp"
#include "systems.hpp"

namespace hostless::test {

/// Why nothing can be solved on a GPU here, or nothing.
inline std::string why_no_gpu() {
  std::string why;
  for (gpu::Found const& found : gpu::libraries()) {
    if (found.problem.empty()) return {};
    why += (why.empty() ? "" : " ") + found.vendor + ": " + found.problem;
  }
  return why;
}

/// For SetUp. Skips the test, with the reason, where no GPU can be used.
inline void need_gpu() {
  if (std::string const why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
}
class Gpu : public testing::Test {
 protected:
  void SetUp() override { need_gpu(); }
};
template <class Parameter>
class GpuWith : public testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override { need_gpu(); }
};

/// Whether a tool watches every access (run_suite.sh says so): all takes fifty times as long and no time is
/// worth judging. Kernels of ranks that share a GPU do not run side by side then.
inline bool under_a_tool() { return std::getenv("HOSTLESS_UNDER_A_TOOL") != nullptr; }

inline int multiprocessors() { return gpu::library().facts(0).multiprocessors; }

/// The ways in which a GPU executes a text: equal plans end with equal bits.
inline std::vector<RunKind> gpu_runs() { return {RunKind::persistent, RunKind::graph, RunKind::stream}; }
/// Of several ranks: two texts have a persistent kernel for them.
inline bool spans_ranks(Method method, PreconditionerKind kind) {
  return (method == Method::cg || method == Method::pipelined_cg) && kind != PreconditionerKind::chebyshev;
}
inline std::vector<RunKind> runs_of_ranks(Method method, PreconditionerKind kind = PreconditionerKind::none) {
  if (spans_ranks(method, kind)) return gpu_runs();
  return {RunKind::graph, RunKind::stream};
}

/// What a GPU offers of them.
inline std::vector<PreconditionerKind> gpu_preconditioners(Method method) {
  std::vector<PreconditionerKind> kinds = {PreconditionerKind::none, PreconditionerKind::jacobi,
                                           PreconditionerKind::block_jacobi};
  if (method == Method::cg) kinds.push_back(PreconditionerKind::chebyshev);
  return kinds;
}

/// As many GPUs as there are, but no more than ranks, which share them where they are fewer.
inline int gpus_of(int ranks) { return std::min(ranks, gpu::library().devices()); }
inline void share_gpus(RunOptions& run, int ranks) {
  run.gpus = gpus_of(ranks);
  run.oversubscribe = run.gpus < ranks;
}

/// The same solve on the first GPU.
inline Setting on_gpu(Setting setting, std::string const& format = "auto",
                      RunKind run = RunKind::persistent) {
  setting.matrix.gpus = setting.solve.run.gpus = 1;
  setting.matrix.gpu_format = format;
  setting.solve.run.kind = run;
  return setting;
}

/// The same solve on its ranks' GPUs.
inline Setting on_gpus(Setting setting, std::string const& format = "auto", std::optional<RunKind> run = {}) {
  RunKind const first = runs_of_ranks(setting.solve.method, setting.solve.preconditioner).front();
  setting = on_gpu(std::move(setting), format, run.value_or(first));
  share_gpus(setting.solve.run, setting.ranks);
  setting.matrix.gpus = setting.solve.run.gpus;
  return setting;
}

inline contract::Outcome outcome_of(Ending const& e) { return contract::Outcome::of(e.result, e.x); }

/// A guess that no solver stores: nothing may depend on x being zero.
inline contract::Outcome solve(System const& a, std::vector<double> const& b, Setting const& setting) {
  return outcome_of(solve_on_threads(a, b, random_vector(a.rows(), 99), setting));
}

/// A solve that somebody has ended: x of the last complete iteration, with its true residual. The host, told
/// to stop after as many iterations, ends with the same bits.
inline void expect_last_complete_iteration(System const& a, std::vector<double> const& b, Setting host,
                                           Ending const& ended) {
  host.solve.max_iterations = ended.result.iterations;
  contract::Outcome expected = outcome_of(solve_on_threads(a, b, host));
  EXPECT_EQ(expected.status, Status::iteration_limit);
  expected.status = Status::aborted;
  EXPECT_EQ(outcome_of(ended).difference(expected), "");
  // And from x alone: a solve that may not iterate says what b - A x is.
  host.solve.max_iterations = 0;
  EXPECT_EQ(solve_on_threads(a, b, ended.x, host).result.true_residual, ended.result.true_residual);
}

/// The same pattern with other values, symmetric again.
inline System with_other_values(System const& a, double factor) {
  System other = a;
  for (std::size_t i = 0; i < other.column.size(); ++i)
    other.value[i] *= factor * (1 + 1e-3 * static_cast<double>(other.column[i] % 3 == 1));
  for (std::int64_t i = 0; i < a.rows(); ++i)
    for (auto k = a.offset[static_cast<std::size_t>(i)]; k < a.offset[static_cast<std::size_t>(i) + 1]; ++k)
      if (a.column[static_cast<std::size_t>(k)] < i)
        other.value[static_cast<std::size_t>(k)] = other.at(a.column[static_cast<std::size_t>(k)], i);
  return other;
}

/// What was chosen, by name; empty: nothing has that name.
inline std::string choice(Result const& result, std::string const& name) {
  for (auto const& [key, value] : result.choices)
    if (key == name) return value;
  return {};
}

/// x on one rank that is a thread, where a test needs the matrix and the solvers themselves.
template <class Use>
void with_matrix(System const& a, MatrixOptions const& options, Use const& use) {
  run_with_threads_transport(1, [&](Transport& transport) {
    Matrix matrix = Matrix::from_rows(transport, 0, a.offset, a.column, a.value, options);
    use(matrix);
  });
}
inline contract::Outcome solve(Solver& solver, std::vector<double> const& b, std::vector<double> const& x0) {
  std::vector<double> x = x0;
  Result const result = solver.solve(b, x);
  return contract::Outcome::of(result, x);
}

}  // namespace hostless::test
