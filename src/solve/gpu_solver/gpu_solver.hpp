#pragma once
// A solver's iterations on a GPU: vectors go there before the text runs and come back when it has ended or
// paused.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "exchange/gpu/gpu_messages.hpp"
#include "hostless/solve/solver.hpp"
#include "solve/gpu_solver/gpu_library.hpp"

namespace hostless::gpu {

/// One of several right-hand sides; fields as in GpuSolver::run.
struct GpuColumn {
  std::span<double const> b;
  std::vector<std::span<double>> fields;
  std::span<StepRecord> history;
};

class GpuSolver {
 public:
  /// Errors  usage        what a GPU run does not offer
  ///         environment  no GPU
  /// communication: nothing is solved (`communicate`).
  GpuSolver(Matrix const& matrix, SolveOptions const& options, std::size_t history_size,
            Communication const* communication = nullptr);
  /// Takes memory on the GPU; with several ranks they then know where each other's is. Collective over the
  /// matrix' group.
  /// Errors  usage        on all ranks: a run that does not fit on one of them
  ///         environment  on all ranks: not enough memory, or GPUs that do not reach each other
  void bind();

  /// Brings values that have changed: the matrix's, the preconditioner's (empty: none). Collective.
  void refresh(std::vector<double> const& preconditioner_data, int preconditioner_version);
  void refresh_values();
  /// Whether runs are to be measured: `auto`, and nothing else asks for one of them.
  bool wants_tuning() const { return wants_tuning_; }
  /// Binds the fastest run, after `refresh`; vectors there are overwritten. start, fields: as in
  /// TuningRequest.
  void tune(State const& start, int fields, std::function<bool()> const& stop);
  /// Runs the text from `state` on. Collective. fields: the method's, the gathered one last; read, then
  /// overwritten.
  void run(State& state, std::span<double const> b, std::span<std::span<double> const> fields,
           std::span<StepRecord> history, std::function<bool()> const& stop,
           std::function<bool(std::int64_t, double, int)> const& progress);
  /// The same for several right-hand sides at once, each with its state.
  void run_columns(std::span<State> states, std::span<GpuColumn const> columns,
                   std::function<bool()> const& stop,
                   std::function<bool(std::int64_t, double, int)> const& progress);
  /// The same with the vectors that are there already.
  void run(State& state, std::span<StepRecord> history, std::function<bool()> const& stop,
           std::function<bool(std::int64_t, double, int)> const& progress);
  /// b, and x, the first field, between a caller's arrays on any GPU and this one.
  void take_rhs(GpuArray const& b) { solve_->take_rhs(b); }
  void take_solution(GpuArray const& guess) { solve_->take_field(0, guess); }
  void clear_solution() { solve_->clear_field(0); }
  void give_solution(GpuArray const& x) const { solve_->give_field(0, x); }
  double largest_rhs() const { return solve_->largest_rhs(); }
  double largest_solution() const { return solve_->largest_field(0); }
  /// Of one that only communicates, after `refresh` with the numbers of the own rows: as many steps as the
  /// state's limit says. Collective.
  void communicate(State& state);
  /// y = A x in local order, between runs; x with its ghosts around.
  void multiply(double const* x, double* y) { solve_->multiply(x, y); }
  /// Of the rows that were put last (refresh_values).
  void diagonal_blocks(double* to) { solve_->diagonal_blocks(to); }
  /// Rank 0 writes the Chrome trace of the last run, all ranks beside each other. Collective, unless ranks
  /// were lost.
  /// Errors  environment  on all ranks: the file cannot be written
  void write_profile(std::string const& path) const;
  Cost cost() const { return solve_->cost(); }
  std::int64_t device_bytes() const { return solve_->device_bytes(); }
  std::int64_t peak_bytes() const { return solve_->peak_bytes(); }
  Trace trace() const { return solve_->trace(); }
  /// Of this rank, in the last run; Clock::none where nothing was recorded.
  IterationTimes iteration_times() const;
  std::string const& device_name() const { return name_; }
  std::string describe() const { return solve_->describe(); }
  /// What carries between ranks; empty where there is one and nobody asked.
  std::string describe_transport() const {
    return is_collective() ? solve_->describe_transport() : std::string();
  }
  std::string describe_sums() const { return solve_->describe_sums(); }
  RunKind run_kind() const { return solve_->run_kind(); }
  std::string why_run() const { return solve_->why_run(); }
  BoundSolve& bound() { return *solve_; }

 private:
  bool is_by_stream() const { return gpu::is_by_stream(problem_); }
  bool is_collective() const { return problem_.ranks > 1 || is_by_stream(); }
  void describe_messages();
  void take_symmetric_memory();
  void bind_ranks();
  void connect_ranks();
  std::vector<double> with_ghosts(std::vector<double> const& preconditioner_data) const;
  void barrier_before_run();

  Matrix const& matrix_;
  WaitLimits limits_;
  Problem problem_;
  PeerCopies copies_;
  bool was_lost_ = false;
  std::unique_ptr<BoundSolve> solve_;
  std::unique_ptr<GpuMessages> messages_;  // of solve_'s memory
  std::string name_, tuning_key_;
  std::int64_t owned_ = 0;
  bool wants_tuning_ = false;
  int values_version_ = 0, preconditioner_version_ = -1;
};

}  // namespace hostless::gpu
