#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "hostless/base/rows.hpp"
#include "hostless/operate/gpu_array.hpp"
#include "hostless/operate/local_matrix.hpp"
#include "hostless/operate/sweep_plan.hpp"
#include "hostless/plan/exchange_plan.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless {

class Assembly;
class CallerRows;
class PatternScan;
struct DeviceRows;

/// How rows are shared out, laid out and exchanged. The defaults choose from the matrix, and say why.
struct MatrixOptions {
  enum class Partition : std::uint8_t { automatic, contiguous, metis, file };
  Partition partition = Partition::automatic;
  std::string partition_file;  ///< for Partition::file: one part number a row
  Route route = Route::direct;
  bool automatic_route = false;  ///< direct inside one node, three_step across nodes, until a model decides
  int ranks_per_node = 0;        ///< declares the nodes; 0 finds them by host name
  FormatRequest format;
  int block = 0;   ///< 0 finds it in the matrix; else 1, 2, 3, 4 or 6
  int slices = 0;  ///< 0: 264, fewer for small systems. Part of the plan: another number, other bits
  /// Accumulators of a row: 1, 2, 4, 8, 16 or 32. More than 1 is for long rows, which w threads of a GPU then
  /// share; rows are stored as CSR. Part of the plan: another number, other bits.
  int threads_per_row = 1;
  int seed = 1;
  /// Above 0: this rank's rows are laid out for a GPU as well, which RunOptions::gpus needs; the same number.
  int gpus = 0;
  /// False, with gpus: the processor gets no layout of its own, which takes one thread most of the set-up.
  /// local() is null then, and products outside a solve are made on the GPU.
  bool host_layout = true;
  /// Layout on the GPU: auto, diagonals (one triangle of a symmetric matrix), diagonals-full, sell or csr;
  /// with Reduction::fast also merge and vendor, which are CSR multiplied in another order of sums.
  std::string gpu_format = "auto";
  /// Threads of each rank that read and lay out its rows, where their source lets several do so
  /// (RowSource::is_concurrent). 0: the processors that the system lets it use, shared with the other ranks
  /// of the machine. The same matrix with any number.
  int setup_threads = 0;
  /// The GPU makes the entries, which the host then never has: for matrices that the host's memory does not
  /// hold, or whose assembly would take longer than the solve. Of generated rows (RowSource::recipe), on one
  /// rank, with gpus == 1. local() is null; products outside a solve are made on the GPU too.
  bool generate_on_gpu = false;
};

/// A user's operator: y[0, rows) = A x[0, rows) for this rank's rows. Called on the host between phases; it
/// does its own communication. Must be linear, symmetric positive definite, and the same function every time.
using OperatorFunction = std::function<void(double const* x, double* y)>;

/// A distributed sparse symmetric matrix, its plan and its storage, on this rank.
///
/// Making one is collective over `transport.group()`. The transport must outlive the matrix and its solvers.
class Matrix {
 public:
  /// Reads the rows of `source` panel by panel: the matrix is never held twice.
  ///
  /// Errors  bad_input  columns out of range or not rising; NaN or infinite values are left to the solve
  /// (`not_finite`)
  ///         usage      options that do not fit the matrix; generate_on_gpu of rows without a recipe
  /// Cost    3 passes over the source, 2 more for a GPU, 2 more where the triangles of a halved layout turn
  /// out
  ///         to differ (LocalMatrix), 3 more where rows are dealt out anew; setup_threads share those over
  ///         the pattern of a contiguous partition and those for a GPU. Peak memory is the final layout and
  ///         some MiB (contiguous partition), 16 bytes an entry more otherwise
  static Matrix from_source(Transport& transport, RowSource const& source, MatrixOptions const& options = {});
  /// From a matrix already distributed in memory by rows: this rank has rows [first_row, first_row + n).
  ///
  /// offsets  [n + 1], offsets[0] == 0;  columns [offsets[n]] global, rising inside a row;  values the same
  /// length Nothing is kept of the arrays. Symmetry is not checked here: Solver samples it.
  static Matrix from_rows(Transport& transport, std::int64_t first_row, std::span<std::int64_t const> offsets,
                          std::span<std::int64_t const> columns, std::span<double const> values,
                          MatrixOptions const& options = {});
  /// From rows that lie in the memory of a GPU of this process, where they are looked at and laid out: the
  /// host gets neither pattern nor values, unless METIS or a file deals the rows out (then the pattern).
  ///
  /// rows          of the whole matrix, the same on all ranks; read again for each solver, so they must live
  ///               and stay as they are until update_gpu_rows has named others
  /// same_bits     a_ij and a_ji are the same bits wherever `rows` has one of them: some layouts then store
  ///               one
  /// options.gpus  above 0; local() is null, and products outside a solve are made on the GPU
  ///
  /// Errors  bad_input    offsets that fall or lead outside the arrays, columns out of range or not rising
  ///         usage        as from_source; types of numbers, two GPUs; rows that are to be generated there
  ///         environment  no GPU, or not enough memory there
  /// Cost    seven passes over the pattern on the GPU; to the host 5 bytes a block row, and a bit for every
  ///         slice
  ///         and ghost block row. Where rows are dealt out: as from_source, and 8 bytes an entry of the
  ///         host's
  ///         memory that are kept
  static Matrix from_gpu_rows(Transport& transport, GpuRows const& rows, bool same_bits,
                              MatrixOptions const& options);
  /// The same with somebody else who looks at them than the GPU library, and who lives as long.
  static Matrix from_gpu_rows(Transport& transport, GpuRows const& rows, bool same_bits,
                              MatrixOptions const& options, PatternScan const& pattern_scan);
  /// A matrix that only a function knows; this rank's share is `rows` rows from `first_row` on.
  static Matrix from_function(Transport& transport, std::int64_t first_row, std::int64_t rows,
                              OperatorFunction function);

  /// Replaces the values, same pattern, without planning again (time steps, Newton). Collective. Solvers made
  /// from this matrix see the new values at their next `solve`.
  ///
  /// Errors  usage  another pattern (as LocalMatrix::update_values sees it), or a matrix made from a function
  void update_values(RowSource const& source);
  void update_values(std::span<std::int64_t const> offsets, std::span<std::int64_t const> columns,
                     std::span<double const> values);

  /// The same of a matrix from from_gpu_rows: other values, or another place for them, in the same pattern.
  /// Collective.
  ///
  /// Errors  bad_input  rows that from_gpu_rows refuses
  ///         usage      another pattern (compared by a hash of 64 bits), or a matrix that was made otherwise
  void update_gpu_rows(GpuRows const& rows, bool same_bits);

  std::int64_t global_rows() const;
  std::int64_t global_entries() const;  ///< 0 for a function
  std::int64_t first_row() const;       ///< of this rank's rows as the caller counts them
  std::int64_t last_row() const;
  std::int64_t owned()
      const;  ///< rows this rank works on (another set than [first_row, last_row) after METIS)
  std::int64_t global_row(std::int64_t local) const;
  Transport& transport() const;
  ExchangePlan const& plan() const;  ///< how the ghosts of a vector come
  SweepPlan const& sweep() const;    ///< in which pieces this rank's rows are worked on
  LocalMatrix const* local() const;  ///< null for a function, and where only a GPU has a layout
  OperatorFunction const& function() const;
  DeviceRows const* device_rows() const;  ///< null without MatrixOptions::gpus
  std::string const& why_block() const;
  /// Where rows are cut inside blocks that would be worth their layout: which, and where to cut. Else empty.
  std::string lost_blocks() const;
  std::string const& why_partition() const;
  /// This rank's number among the ranks of its machine, and how many those are, whatever nodes were declared.
  int rank_here() const;
  int ranks_here() const;
  /// Rises with every update_values.
  int values_version() const;

  /// Vectors between the caller's rows [first_row, last_row) and the local order. Collective.
  void to_local(std::span<double const> mine, std::span<double> local) const;
  void from_local(std::span<double const> local, std::span<double> mine) const;

  Matrix(Matrix&&) noexcept;
  Matrix& operator=(Matrix&&) noexcept;
  ~Matrix();

 private:
  struct Parts;
  static Matrix from_recipe(Transport& transport, RowSource const& source, MatrixOptions const& options);
  GhostReads lay_out_there(CallerRows const& source, bool same_bits);
  explicit Matrix(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// The plans of a matrix, without binding them: what `hostless plan` prints. Collective over `group`. Each
/// plan tells where all ranks are, so those of N ranks have N^2 numbers: one rank has them.
struct PlannedMatrix {
  ExchangePlan mine;                ///< of this rank, where it was asked for
  std::vector<ExchangePlan> plans;  ///< of all ranks, on rank 0; elsewhere empty
  std::vector<Pattern> patterns;    ///< as `plans`
  Tiling tiling;                    ///< of this rank's rows: what plans do not hold
  std::string why_block, why_partition;
};
PlannedMatrix plan_matrix(Group& group, RowSource const& source, MatrixOptions const& options,
                          bool to_each_its_own = false);

}  // namespace hostless
