#pragma once
// A method bound to a GPU without a solver around it, so that a test reaches what a solver hides; and what
// ranks on GPUs are asked for, whatever carries between them: to stop together, to find a lost one.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "gpu_setting.hpp"
#include "solve/gpu_solver/gpu_solver.hpp"
#include "solve/methods/method_vectors.hpp"
#include "solve_contract_check.hpp"

namespace hostless::test {

class BoundCase {
 public:
  /// Iterates `limit` times: no tolerance ends it. options: preconditioner none.
  BoundCase(Matrix const& matrix, SolveOptions const& options, std::int64_t limit)
      : limit_(limit),
        history_(static_cast<std::size_t>(limit) + 1),
        gpu_solver_(matrix, options, history_.size()) {
    gpu_solver_.bind();
    fields_.assign(static_cast<std::size_t>(fields_of(options)),
                   std::vector<double>(static_cast<std::size_t>(matrix.owned())));
  }

  contract::Outcome run(std::vector<double> const& b, std::vector<double> const& x0) {
    fields_[0] = x0;
    State state;
    state.limit = limit_;
    state.history = history_.data();
    state.history_size = static_cast<std::int64_t>(history_.size());
    gpu_solver_.refresh({}, 0);
    std::vector<std::span<double>> const fields(fields_.begin(), fields_.end());
    gpu_solver_.run(
        state, b, fields, history_, [] { return false; }, [](std::int64_t, double, int) { return false; });
    auto const kept = std::min<std::int64_t>(state.iteration, limit_) + 1;
    return {state.status,
            state.iteration,
            state.restarts,
            std::sqrt(state.true_rr),
            norms(std::span(history_).first(static_cast<std::size_t>(kept))),
            fields_[0]};
  }
  gpu::BoundSolve& bound() { return gpu_solver_.bound(); }
  gpu::GpuSolver const& gpu_solver() const { return gpu_solver_; }

 private:
  std::int64_t limit_;
  std::vector<StepRecord> history_;
  gpu::GpuSolver gpu_solver_;
  std::vector<std::vector<double>> fields_;
};

/// One rank alone sees that somebody asks, 10 ms after it has begun: all end at the same iteration
/// (solve_on_threads compares them), which is the host's after as many.
inline void expect_all_stop(System const& a, std::vector<double> const& b, Setting const& host,
                            Setting const& gpus) {
  std::atomic<int> asked{0};
  std::atomic<Clock::rep> begun{0};  // on several GPUs kernels may load for longer than a test would wait
  Ending const ended = solve_on_threads(a, b, gpus, [&](int rank, SolveOptions& options) {
    if (rank != gpus.ranks - 1) return;
    options.callback = [&](Progress const&) {
      if (begun == 0) begun = Clock::now().time_since_epoch().count();
      return false;
    };
    options.run.stop_requested = [&] {
      ++asked;
      auto const since = Clock::now().time_since_epoch() - Clock::duration(begun.load());
      return begun != 0 && since > std::chrono::milliseconds(10);
    };
  });
  for (Result const& one : ended.by_rank) ASSERT_EQ(one.status, Status::aborted) << name(gpus.solve.run.kind);
  EXPECT_GT(asked.load(), 1);
  EXPECT_GT(ended.result.iterations, 0) << "it was asked before it began";
  EXPECT_LT(ended.result.iterations, a.rows()) << "it came too late to end anything";
  expect_last_complete_iteration(a, b, host, ended);
}

constexpr double grace_s = 1.0;

/// This rank's part of a system, bound to its GPU, and how it ends where nobody is lost.
class PeersCase {
 public:
  /// whole: of b = random_vector(rows, 56) and x0 = random_vector(rows, 99).
  PeersCase(Transport& transport, System const& a, Setting const& setting, contract::Outcome const& whole)
      : transport_(transport),
        b_(random_vector(a.rows(), 56)),
        x0_(random_vector(a.rows(), 99)),
        share_(share_of(a, setting.ranks, transport.group().rank(), false)),
        matrix_(Matrix::from_rows(transport, share_.first, share_.offset, share_.column, share_.value,
                                  setting.matrix)),
        expected_(contract::share_of(whole, matrix_)) {
    bound_.emplace(matrix_, setting.solve, setting.solve.max_iterations);
  }
  /// A solve that is lost everywhere within the deadline and the grace, then one as if nothing had happened.
  /// library_s  how long a rank waits until a library has given its messages up
  void lose(int victim, gpu::Silence silence, double deadline_s, double library_s = 0) {
    Group& group = transport_.group();
    std::string const what = "rank " + std::to_string(victim) + " silent at barrier " +
                             std::to_string(silence.barrier) + ", seen by rank " +
                             std::to_string(group.rank());
    if (group.rank() == victim) bound_->bound().silence(silence);
    group.barrier();
    auto const begin = Clock::now();
    contract::Outcome const lost = run();
    double const seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    EXPECT_EQ(lost.status, Status::peer_lost) << what;
    EXPECT_LT(seconds, deadline_s + library_s + grace_s) << what;
    if (group.rank() != victim) {  // all of it may be silent
      EXPECT_GT(seconds, 0.5 * deadline_s) << "nobody waited; " << what;
    }
    bound_->bound().silence({});
    group.barrier();
    // Before ranks have met again: what is recorded holds pointers of the matrix.
    if (silence.barrier % 2 != 0) matrix_.update_values(share_.offset, share_.column, share_.value);
    auto const again = Clock::now();
    contract::Outcome const afterwards = run();
    double const took = std::chrono::duration<double>(Clock::now() - again).count();
    EXPECT_EQ(afterwards.difference(expected_), "") << "afterwards, in " << took << " s; " << what;
    group.barrier();
  }

 private:
  contract::Outcome run() {
    auto const local = [&](std::vector<double> const& global) {
      std::vector<double> mine;
      for (std::int64_t i = 0; i < matrix_.owned(); ++i)
        mine.push_back(global[static_cast<std::size_t>(matrix_.global_row(i))]);
      return mine;
    };
    return bound_->run(local(b_), local(x0_));
  }
  Transport& transport_;
  std::vector<double> b_, x0_;
  Share share_;
  Matrix matrix_;
  contract::Outcome expected_;
  std::optional<BoundCase> bound_;
};

/// Ranks that give each other up after so many seconds.
inline Setting lossy(Setting setting, double deadline_s) {
  setting.solve.limits = {deadline_s, deadline_s};
  return setting;
}

struct Hang {
  int victim;
  gpu::Silence silence;
};
/// The same on all ranks: any rank, any block, a barrier or look in [first, last].
inline std::vector<Hang> random_hangs(int count, int ranks, int blocks, int first, int last) {
  std::mt19937 random(static_cast<unsigned>(ranks));
  auto const below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<Hang> hangs;
  for (int k = 0; k < count; ++k) {
    int const victim = below(ranks), block = below(blocks);
    hangs.push_back({victim, {block, static_cast<std::uint32_t>(first + below(last - first + 1))}});
  }
  return hangs;
}

}  // namespace hostless::test
