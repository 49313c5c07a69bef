#pragma once
// A method bound to a GPU without a solver around it, so that a test reaches what a solver hides.

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "gpu_setting.hpp"
#include "solve/gpu_solver/gpu_solver.hpp"
#include "solve/methods/method_vectors.hpp"

namespace hostless::test {

class BoundCase {
 public:
  /// Iterates `limit` times: no tolerance ends it. options: preconditioner none.
  BoundCase(Matrix const& matrix, SolveOptions const& options, std::int64_t limit)
      : limit_(limit),
        history_(static_cast<std::size_t>(limit) + 1),
        gpu_solver_(matrix, options, history_.size()) {
    gpu_solver_.bind();
    int const fields = options.method == Method::cg                    ? 4
                       : options.method == Method::single_reduction_cg ? 6
                                                                       : 8;
    fields_.assign(static_cast<std::size_t>(fields),
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
        state, b, fields, history_, [] { return false; }, [](std::int64_t, double) { return false; });
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

}  // namespace hostless::test
