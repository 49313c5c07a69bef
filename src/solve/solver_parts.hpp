#pragma once
// What a Solver holds, for the files that its work is shared out to.

#include <memory>
#include <optional>
#include <vector>

#include "hostless/solve/solver.hpp"
#include "operate/device_rows.hpp"
#include "run/engine.hpp"
#include "solve/checkpoint.hpp"
#include "solve/gpu_solver/gpu_solver.hpp"
#include "solve/methods/method_facts.hpp"
#include "solve/methods/preconditioner.impl.hpp"
#include "solve/setup/chebyshev_setup.hpp"
#include "solve/setup/preconditioner_setup.hpp"

namespace hostless {

struct Solver::Parts {
  Parts(Matrix const& m, SolveOptions o) : matrix(m), options(std::move(o)) {}

  Matrix const& matrix;
  SolveOptions options;
  std::shared_ptr<std::vector<double>> vector_with_ghosts = std::make_shared<std::vector<double>>();
  std::vector<double> rhs, apart;
  double* gathered = nullptr;  // in it: the first owned entry
  std::vector<std::vector<double>> fields;
  std::vector<double> preconditioner_data;
  std::unique_ptr<StepRecord[]> history_memory;  // pages that no iteration comes to are never touched
  std::span<StepRecord> history;                 // by iteration, the first million
  std::optional<BadDiagonal> bad_row;            // first global row that the preconditioner cannot use
  ChebyshevBound bound;
  int preconditioner_version = -1;
  std::optional<LocalMatrix> rounded;  // on the processor, with MatrixPrecision::fp32
  int rounded_version = -1, null_space_version = -1;
  State state;
  std::unique_ptr<Exchange> exchange;
  std::unique_ptr<host::Engine> engine;
  std::unique_ptr<gpu::GpuSolver> gpu;
  RunOptions run;
  Clock::time_point begun;
  std::string why_stopped;  // what this rank stopped the solve for; empty: nothing
  double time_setup_s = 0;
  double amplitude = 0;  // largest |b|
  double b_square = 0;   // (b, b) of the projected b
  double null_space_removed = 0;
  CheckpointIdentity identity;
  GpuVectors const* there = nullptr;  // of the solve under way, where they are not the host's

  Group& group() const { return matrix.transport().group(); }
  std::int64_t limit() const {
    if (options.max_iterations >= 0) return options.max_iterations;
    std::int64_t const rows = matrix.global_rows();
    return rows > std::numeric_limits<std::int64_t>::max() / 10 ? rows : 10 * rows;
  }

  void check_options() const;
  void allocate();
  void check_symmetry();
  struct ConstantImage {
    static constexpr double rounding = 1e-8;
    double constant, scale;  // largest entry of A 1, and of A x for a random x
    double sum, size;        // of the entries of A x, and of what they are without their signs
    bool vanishes() const { return constant <= rounding * scale; }
    bool vanishes_from_left() const { return sum <= rounding * size; }  // A' 1
  };
  ConstantImage constant_image();
  void refresh_null_space();
  std::string advice(Result const& result);
  std::string advice_where_it_stagnates(Result const& result);
  std::string advice_where_constants_vanish();
  std::string advice_where_it_breaks_down() const;
  std::string advice_where_it_is_indefinite() const;
  double constant_share();
  std::string more_iterations(Result const& result) const;
  std::string other_preconditioner();
  bool has_constant_diagonal();
  std::string why_aborted();
  bool stop_for(std::string const& reason);
  void multiply(double const* x, double* y);
  /// All that follows from the matrix' values, where they have changed.
  void refresh() {
    refresh_null_space();
    refresh_rounded();
    refresh_preconditioner();
  }
  void refresh_preconditioner();
  void refresh_rounded();
  void refresh_preconditioner_data(bool block);
  void refresh_bound();
  bool is_chebyshev() const { return options.preconditioner == PreconditionerKind::chebyshev; }
  bool generated() const { return matrix.device_rows() && matrix.device_rows()->recipe; }
  /// The processor cannot multiply with it.
  bool only_on_gpu() const { return matrix.device_rows() && matrix.local() == nullptr; }
  MethodFacts const& method() const { return facts_of(options.method); }
  PreconditionerKind simple_kind() const { return hostless::simple_kind(options); }
  AnyPreconditioner preconditioner() const;
  std::int64_t preconditioner_bytes() const;
  void prepare_rhs();
  bool easy_ending(Result& result);
  void start_state();
  void tune();
  void resume();
  void iterate(Result& result);
  void run_once();
  void run_on_gpu();
  void identify();
  std::vector<std::span<double>> saved();
  std::vector<std::span<double>> checkpointed();
  void find_true_residual();
  void write_profile(Result& result) const;
  void estimate_condition(Result& result) const;
  void finish(Result& result, PhaseTimes const& before, double waited_before);
  void describe(Result& result) const;
  void describe_settings(Result& result) const;
  void describe_storage(Result& result) const;
  std::int64_t matrix_bytes(bool is_rounded) const;
  double take_mean(std::vector<double>& values) const;
  bool project_solution();
  void project_residual();
  void iterate_and_project(Result& result);
  Result solve();
  /// A lost rank is an ending.
  Result solve_or_lose();

  // Of a solve in place: b and x stay in the memory of a GPU.
  void check_in_place() const;
  void prepare_in_place();
  double true_residual_in_place();
  void start_in_place();
  void give_answer();
};

}  // namespace hostless
