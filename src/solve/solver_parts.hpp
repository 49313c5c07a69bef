#pragma once
// What a Solver holds, for the files that its work is shared out to.

#include <memory>
#include <optional>
#include <vector>

#include "hostless/solve/solver.hpp"
#include "operate/array.hpp"
#include "operate/device_rows.hpp"
#include "run/engine.hpp"
#include "solve/checkpoint.hpp"
#include "solve/gpu_solver/gpu_solver.hpp"
#include "solve/methods/method_facts.hpp"
#include "solve/methods/preconditioner.impl.hpp"
#include "solve/setup/chebyshev_setup.hpp"
#include "solve/setup/condition.hpp"
#include "solve/setup/preconditioner_setup.hpp"

namespace hostless {

/// A right-hand side and its solve.
struct SolveColumn {
  std::span<double> rhs;                         ///< [owned]
  std::vector<std::span<double>> fields;         ///< [owned] each
  double* gathered = nullptr;                    ///< the first owned entry, ghosts around
  std::unique_ptr<StepRecord[]> history_memory;  ///< pages that no iteration comes to are never touched
  std::span<StepRecord> history;                 ///< by iteration, the first million
  State state;
  double amplitude = 0;  ///< largest |b|
  bool guess_is_finite = true;
  double b_square = 0;  ///< (b, b) of the projected b
  /// What is left of b beside its mean, in relation to that, is rounding below.
  static constexpr double rounding_of_mean = 1e-14;
  double null_space_removed = 0;
  double underflowed_norm = 0;  ///< |b| where its square underflows and x = 0 will do
  std::vector<double> guess;    ///< [owned] where keeps_guess; empty: it was zero, or lies on a GPU
  bool keeps_guess = false;
  std::int64_t went_back_to = -1;  ///< the iteration whose x is handed back, where later ones have spoilt it
  double left_behind = -1;  ///< |b - A x| of the x that the guess was handed back for; below 0: it was not
  double rounded_from =
      -1;  ///< |b - A x| that had converged before x was rounded to fp32; below 0: nothing was lost
};

/// Works on one right-hand side at a time, the one that it is itself; those beside it wait in `others`.
struct Solver::Parts : SolveColumn {
  Parts(Matrix const& m, SolveOptions o) : matrix(m), options(std::move(o)) {}

  Matrix const& matrix;
  SolveOptions options;
  /// Of all columns, `stride` apart: b, the fields, the gathered one with its ghosts.
  Array<double> rhs_memory, apart;
  std::vector<Array<double>> field_memory;
  std::shared_ptr<Array<double>> vectors_with_ghosts = std::make_shared<Array<double>>();
  std::int64_t stride = 0;
  std::vector<SolveColumn> others;
  std::vector<double> preconditioner_data;     // empty where a run on the processor has it
  Array<double> preconditioner_on_huge_pages;  // there, as what is read beside it
  std::optional<BadDiagonal> bad_row;          // first global row that the preconditioner cannot use
  ChebyshevBound bound;
  int preconditioner_version = -1;
  std::optional<LocalMatrix> rounded;  // on the processor, with MatrixPrecision::fp32
  int symmetry_version = -1, rounded_version = -1, null_space_version = -1;
  std::unique_ptr<Exchange> exchange;
  std::unique_ptr<host::Engine> engine;
  std::unique_ptr<gpu::GpuSolver> gpu;
  RunOptions run;
  Clock::time_point begun;
  std::string why_stopped;  // what this rank stopped the solve for; empty: nothing
  double time_setup_s = 0;
  bool rounds_to_fp32 = false;                    // x, in the end
  double time_spent_s = 0;                        // of the time limit, before this solve
  std::optional<NullDirections> null_directions;  // where somebody looks for them
  bool saw_null_direction = false;
  bool is_repeating = false;   // steps that have been made already, to go back to an x on the way
  std::int64_t saved_at = -1;  // the iteration of the last checkpoint of this solve
  CheckpointIdentity identity;
  GpuVectors const* there = nullptr;  // of the solve under way, where they are not the host's

  Group& group() const { return matrix.transport().group(); }
  int columns() const { return 1 + static_cast<int>(others.size()); }
  /// use() with the right-hand side of that number in place.
  template <class Use>
  decltype(auto) on_column(int number, Use const& use) {
    struct Swapped {
      Swapped(SolveColumn& a, SolveColumn* b) : here(a), there(b) { swap(); }
      ~Swapped() { swap(); }
      Swapped(Swapped const&) = delete;
      Swapped& operator=(Swapped const&) = delete;
      void swap() const {
        if (there != nullptr) std::swap(here, *there);
      }
      SolveColumn& here;
      SolveColumn* there;
    } const swapped(*this, number == 0 ? nullptr : &column(number));
    return use();
  }
  std::int64_t limit() const {
    if (options.max_iterations >= 0) return options.max_iterations;
    std::int64_t const rows = matrix.global_rows();
    return rows > std::numeric_limits<std::int64_t>::max() / 10 ? rows : 10 * rows;
  }

  void check_options() const;
  void allocate();
  void refresh_symmetry();
  struct SymmetrySample {
    double vau = 0, uav = 0, size = 0, tolerance = 0;
  };
  SymmetrySample sample_symmetry(int exponent);
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
  std::string advice_by_status(Result const& result);
  std::string word_of_guess() const;
  std::string advice_where_it_stagnates(Result const& result);
  std::string advice_at_the_limit(Result const& result);
  std::string advice_where_recurrence_is_lost(Result const& result);
  std::string advice_where_rounding_lost_it(Result const& result) const;
  std::string advice_on_convection() const;
  std::string advice_where_b_was_constant() const;
  std::string advice_where_constants_vanish();
  std::string advice_where_more_vanishes() const;
  bool sees_null_direction(State const& s);
  bool steps_saw_null_direction() const;
  std::int64_t first_null_direction() const;
  std::string advice_where_it_breaks_down() const;
  std::string advice_where_it_is_indefinite() const;
  double constant_share();
  bool constants_hold_it_up();
  std::string more_iterations(Result const& result) const;
  std::string other_preconditioner();
  bool has_constant_diagonal() { return !(diagonal_span() > 2); }
  double diagonal_span();
  struct EmptyRow {
    std::int64_t row = 0;
    double b = 0;  // NaN where nobody here knows it
  };
  std::optional<EmptyRow> find_empty_row();
  std::string name_empty_row(std::string const& otherwise);
  std::string why_aborted();
  std::string advice_on_rows();
  bool stop_for(std::string const& reason);
  void multiply(double const* x, double* y);
  /// All that follows from the matrix' values, where they have changed.
  void refresh() {
    refresh_symmetry();
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
  std::span<double const> stored_preconditioner() const;
  AnyPreconditioner preconditioner() const;
  std::int64_t preconditioner_bytes() const;
  void prepare_rhs();
  void find_amplitude();
  void measure_rhs();
  void forget_rounding_of_mean();
  double measure_scaled(int exponent);
  void end_below_atol();
  bool preconditioner_is_unfit();
  bool easy_ending(Result& result);
  void start_state();
  void check_columns() const;
  void allocate_columns();
  std::unique_ptr<Exchange> bind_exchange();
  /// By its number, while number 0 is in place.
  SolveColumn& column(int number) {
    return number == 0 ? *this : others[static_cast<std::size_t>(number) - 1];
  }
  void tune();
  void resume();
  void iterate_to_the_end(Result& result);
  void iterate(Result& result);
  void check_checkpoint_file() const;
  void save(Result& result);
  std::string word_of_checkpoint(Result const& result) const;
  void run_once();
  void run_on_gpu();
  void identify();
  std::vector<std::span<double>> saved();
  std::vector<std::span<double>> checkpointed();
  void find_true_residual(bool is_lost = false);
  double measure_true_residual();
  bool is_answer_finite();
  void keep_guess();
  std::int64_t best_iteration(std::int64_t first_null) const;
  void go_back_to_best(Result& result);
  bool guess_is_better() const;
  void take_guess();
  void give_guess_back();
  void round_answer();
  void require_finite_answer();
  void write_profile(Result& result) const;
  IterationTimes iteration_times(Result const& result) const;
  void estimate_condition(Result& result) const;
  struct Counted {
    PhaseTimes times;
    gpu::Cost gpu;
    double waited_s;
  };
  Counted begin_solve(Result& result);
  void finish(Result& result);
  void finish_times(Result& result, Counted const& counted) const;
  void finish_easily(Result& result) const;
  void finish_together(Result& result) const;
  void count_gpu(Result& result, gpu::Cost const& before) const;
  void manufacture(std::uint64_t seed);
  double manufactured_error(std::uint64_t seed) const;
  void describe(Result& result) const;
  void describe_settings(Result& result) const;
  void describe_storage(Result& result) const;
  std::int64_t matrix_bytes(bool is_rounded) const;
  double take_mean(std::span<double> values) const;
  bool project_solution();
  void project_residual();
  void iterate_and_project(Result& result);
  Result solve();
  Result solve_columns();
  bool sweep_outgrows_caches() const;
  void run_columns();
  void run_columns_on_gpu(std::span<State> states);
  static void tell_whole(Result& whole, std::vector<Result> const& each);
  /// A lost rank is an ending.
  Result solve_or_lose();
  Result lost_outside(std::string const& why);

  // Of a solve in place: b and x stay in the memory of a GPU.
  void check_in_place() const;
  void prepare_in_place();
  double true_residual_in_place();
  void clear_answer();
  void give_answer();
};

}  // namespace hostless
