#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hostless/base/deadline.hpp"
#include "hostless/base/status.hpp"
#include "hostless/exchange/exchange.hpp"
#include "hostless/operate/gpu_array.hpp"
#include "hostless/run/run_options.hpp"
#include "hostless/solve/iteration_times.hpp"
#include "hostless/solve/matrix.hpp"
#include "hostless/solve/method.hpp"

namespace hostless {

enum class PreconditionerKind : std::uint8_t { none, jacobi, block_jacobi, function, chebyshev };
/// How the matrix is stored for the products of iterations; vectors and sums are fp64 either way.
enum class MatrixPrecision : std::uint8_t {
  fp64,
  fp32  ///< rounded, and beside it in fp64 for true residuals, from which the method goes on now and then
};
char const* name(PreconditionerKind kind);
char const* name(Reduction reduction);
char const* name(MatrixPrecision precision);
/// Errors  usage  unknown names
PreconditionerKind preconditioner_from(char const* text);
Reduction reduction_from(char const* text);
MatrixPrecision matrix_precision_from(char const* text);

/// What a per-iteration callback sees.
struct Progress {
  std::int64_t iteration;
  double residual_norm;  ///< of the recurrence
  double target;         ///< |b - A x| must fall below this
  /// This rank's x of the iteration, in local order, while the callback runs; empty without
  /// SolveOptions::callback_reads_x.
  std::span<double const> x = {};
  int column = 0;  ///< of SolveOptions::rhs_columns; with GPUs the first one that goes on
};

/// For PreconditionerKind::chebyshev: z = q(M A) M r with a polynomial q; fewer iterations, and sums over
/// ranks, for more products with A.
struct ChebyshevOptions {
  int degree = 4;     ///< of q: products with A in one application
  double ratio = 30;  ///< q is small where eigenvalues of M A lie in [upper / ratio, upper]
  /// Bound of the eigenvalues of M A; 0: 1.1 times what a Lanczos run of 12 steps finds. Raised where it
  /// turns out to be too low.
  double upper = 0;
  PreconditionerKind inner = PreconditionerKind::jacobi;  ///< M: none, jacobi or block_jacobi
  bool operator==(ChebyshevOptions const&) const = default;
};

struct SolveOptions {
  Method method = Method::cg;
  RunOptions run;
  PreconditionerKind preconditioner = PreconditionerKind::none;
  /// z = M r for this rank's rows in local order, for PreconditionerKind::function; method cg only.
  std::function<void(double const* r, double* z)> preconditioner_function;
  ChebyshevOptions chebyshev;  ///< for PreconditionerKind::chebyshev; method cg only
  /// fp32 streams half the bytes of values and holds 1.5 times as many; the answer is as accurate as with
  /// fp64. Method cg with preconditioner none, jacobi or block_jacobi. It is for GPUs: on the processor it is
  /// there to compare with, and streams no less.
  MatrixPrecision matrix_precision = MatrixPrecision::fp64;
  /// Right-hand sides that are solved for at once, 1 to most_columns: each is the solve that it would be
  /// alone, bit for bit, with its own ending; products read the matrix once for all of them, and their ghosts
  /// and sums travel together. Not with a preconditioner that is a function, checkpoints or a null space.
  int rhs_columns = 1;
  double rtol = 1e-8;  ///< stop when |b - A x| <= max(rtol |b|, atol)
  double atol = 0;
  std::int64_t max_iterations = -1;  ///< -1: 10 times the rows
  /// `diverged` where the true residual is more than so many times the first; 1 to 1e100, or 0: the method's own,
  /// 1e10 of those for symmetric matrices and 1e16 of bicgstab.
  double divergence_limit = 0;
  bool null_space_constant = false;  ///< A 1 = 0: b, the guess and x lose their means; that x is judged
  Reduction reduction = Reduction::ordered;
  double time_limit_s = 0;  ///< 0: none; ends with `aborted`
  /// Called on every rank after each iteration; returning true asks all ranks to stop (`aborted`). With GPUs
  /// it is called now and then, with the iteration that the rank's kernels are at, so that ranks are told
  /// different ones: it may not call what all ranks must call together.
  std::function<bool(Progress const&)> callback;
  /// Progress::x is there: so x may not wait for the next product, which reads the same direction. Refused on
  /// a GPU, which keeps x.
  bool callback_reads_x = false;
  /// Written every checkpoint_every iterations, atomically; on the processor once more where the iteration
  /// limit or a wish ends the solve.
  std::string checkpoint_file;
  std::int64_t checkpoint_every = 0;
  std::string resume_file;  ///< goes on from a checkpoint of the same matrix, plan, method, preconditioner,
                            ///< reduction, null space and b, bit for bit
  bool check_symmetry = true;  ///< one sample x' A y == y' A x of the first values and of all later ones
  /// Whoever made the matrix has compared every entry with its mirror, or knows that they are equal: there is no sample.
  bool symmetry_compared = false;
  /// By how much the two may differ, of the sum of the terms' sizes.
  double symmetry_tolerance = 1e-9;
  WaitLimits limits = WaitLimits::from_environment();
};

/// Errors  usage  a tolerance below 0, or NaN
void check_tolerances(double rtol, double atol);
/// Errors  usage  tolerances as above, or a divergence limit that is neither 0 nor from 1 to 1e100
void check_ends(SolveOptions const& options);

/// How a solve ended, and what it cost. The same on every rank but for the times.
struct Result {
  Status status = Status::running;
  std::string message;  ///< one sentence for people; empty when there is nothing to say
  std::int64_t iterations = 0;
  std::int64_t resumed_at = 0;        ///< iterations of these that the checkpoint brought along
  std::int64_t restarts = 0;          ///< times the true residual disagreed with the recurrence
  std::int64_t replacements = 0;      ///< planned true residuals: of an fp32 matrix, restarts not counted
  double rhs_norm = 0;                ///< |b| (after projection); of a b in the memory of a GPU whose square
                                      ///< underflows a bound of it
  double true_residual = 0;           ///< |b - A x|, computed from x
  double true_relative_residual = 0;  ///< over |b|
  double recurrence_relative_residual = 0;  ///< what the recurrence believed at the end
  double residual_gap = 0;                  ///< | |true| - |recurrence| | / |b|
  double null_space_removed = 0;            ///< |b - projected b|
  bool lost_by_rounding = false;            ///< it had converged before x was rounded to fp32
  /// The extreme eigenvalues of M A as far as the method's steps have seen them (of the first million, of the
  /// matrix that iterations multiply with), and one over the other: never more than the condition number, but
  /// for rounding. NaN without a step, and where M A is not positive definite.
  double smallest_eigenvalue = std::numeric_limits<double>::quiet_NaN();
  double largest_eigenvalue = std::numeric_limits<double>::quiet_NaN();
  double condition_estimate = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> residual_history;  ///< [iterations + 1] recurrence norms |r| (the first million)
  double time_setup_s = 0;               ///< of making the solver
  double time_solve_s = 0;
  /// On a GPU: the time its kernels ran, launches, and bytes held there; what matrix and vectors must take by
  /// the method's model, and how much less memory was free on the device at worst. 0 elsewhere.
  double time_device_s = 0;
  std::int64_t launches = 0, device_bytes = 0, device_model_bytes = 0, device_peak_bytes = 0;
  PhaseTimes times;
  IterationTimes iteration_times;             ///< the same on every rank; on a GPU with RunOptions::trace
  double waited_s = 0;                        ///< for peers, inside the above
  std::int64_t bytes_per_iteration = 0;       ///< all ranks: matrix and vectors, by the method's model
  std::int64_t halo_bytes_per_iteration = 0;  ///< all ranks, sent
  std::int64_t checkpoints = 0;
  std::string
      checkpoint_problem;       ///< why the last checkpoint was not written; empty: it was, or none was due
  std::string profile_problem;  ///< why RunOptions::profile_file was not written; empty: it was, if asked for
  /// Both, as far as there are such.
  std::vector<std::string> unwritten() const;
  std::vector<std::pair<std::string, std::string>> choices;   ///< what was chosen, and why
  std::vector<std::pair<std::string, std::string>> settings;  ///< SolveOptions, as they were understood
  /// With several right-hand sides: how the solve of each ended, without what they have together (times,
  /// bytes, choices, settings). The whole then has status, message and numbers of the first of them that did
  /// not converge, else of the one with the largest relative residual, and the most iterations of any.
  std::vector<Result> columns;
};

/// The vectors of a solve in the memory of GPUs: fp64 or fp32, entry k of each is global row k. Each rank
/// reads and writes its own rows of them, on whatever GPU of this process they are.
struct GpuVectors {
  GpuArray b;
  std::optional<GpuArray> guess;  ///< nothing: zero
  GpuArray x;                     ///< the answer; may be where `guess` is
};

/// A method bound to a matrix: everything is allocated and matched here, once; then solve as often as needed.
///
/// Collective over the matrix's group. The matrix must outlive the solver.
class Solver {
 public:
  /// Errors  usage      an option that this transport, run or method does not offer
  ///         bad_input  a matrix that is visibly not symmetric, or A 1 not 0 with null_space_constant, or
  ///                    values beyond fp32 with matrix_precision fp32
  Solver(Matrix const& matrix, SolveOptions options);
  Solver(Solver&&) noexcept;
  ~Solver();

  /// Other tolerances from the next solve on, without anything else being made again. The same on all ranks.
  /// Errors  usage  tolerances below 0
  void set_tolerances(double rtol, double atol);

  /// How much of SolveOptions::time_limit_s has gone before the next solves begin: one limit of several.
  void set_time_spent(double seconds);

  /// Whether from the next solve on x is rounded to fp32 in the end, and judged as it then is: `stagnated`,
  /// with Result::lost_by_rounding, where the rounded x misses a target that the solve had met; `not_finite`,
  /// where fp32 does not hold an entry. Costs one more product with A. Of vectors on a GPU their x says it:
  /// it is so where that is fp32. The same on all ranks.
  void round_answers(bool to_fp32);

  /// Solves A x = b. b, x: this rank's rows [matrix.first_row, last_row), column after column; x is the guess
  /// and the solution (of bicgstab that fails before a limit the guess again, where it was better than the last x).
  Result solve(std::span<double const> b, std::span<double> x);
  /// The same with b and x where they are, on a GPU: neither goes through the host's memory. Begins when
  /// GpuArray::after has come, and has read and written all when it returns. b is measured by one more run of
  /// the method's first sum. Errors  usage        without RunOptions::gpus; with checkpoints or a null space;
  /// arrays that are too short
  ///         environment  GPUs that cannot copy to each other
  Result solve(GpuVectors const& vectors);
  /// The same on the solver's own vectors, in local order (no copies): fill b() and x() first.
  Result solve();
  /// Of a right-hand side, 0 to SolveOptions::rhs_columns - 1.
  std::span<double> b(int column = 0);
  std::span<double> x(int column = 0);

  /// Fills b() with A x* for x* uniform in [-1, 1] by global row and seed, |x*| = 1, and x() with zero
  /// (Trotter et al. 2025, section 4.1.4); of further columns with the seeds that follow. Collective.
  void manufacture(std::uint64_t seed = 1);
  /// |x() - x*| / |x*| for the x* of `manufacture`, the largest of all columns. Collective.
  double manufactured_error(std::uint64_t seed = 1) const;
  /// y = A x in local order, for callers who want products. x, y [owned]. Collective.
  void multiply(std::span<double const> x, std::span<double> y);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace hostless
