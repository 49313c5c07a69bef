#pragma once
// A matrix on its ranks, as Python holds it.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "array_rows.hpp"
#include "hostless/base/error.hpp"
#include "hostless/operate/gpu_array.hpp"
#include "hostless/solve/option_table.hpp"
#include "hostless/solve/report.hpp"
#include "thread_team.hpp"

namespace hostless::python {

/// Python functions of the solve that is under way, called with the GIL. Vectors are this process's rows, in
/// the caller's order.
struct Hooks {
  std::function<void(double const* x)> callback;                   ///< after each iteration
  std::function<void(double const* r, double* z)> preconditioner;  ///< z = M r
};

/// One matrix, laid out on its ranks once; solved, multiplied and given new values as often as asked. One
/// thread at a time.
class System {
 public:
  using Operator = std::function<void(double const* x, double* y)>;

  /// Ranks as threads of this process. The arrays hold the whole matrix, and are not needed afterwards.
  System(Arrays const& arrays, Choices const& choices, int ranks);
  /// The same of rows in the memory of a GPU, where they must live and stay as they are until other ones are
  /// named. same_bits: as Matrix::from_gpu_rows has it.
  System(GpuRows const& rows, bool same_bits, Choices const& choices, int ranks);
  /// A matrix that only a function knows, on one rank. `apply` is called with the GIL, and as long as the
  /// system lives.
  /// `callable` is what `apply` calls: held here alone, for the garbage collector to see.
  System(std::int64_t size, Operator apply, nanobind::object callable);
  /// This process is one rank of an MPI communicator, and brings its rows by `lay_out`: until then it has no
  /// matrix, and can only agree. Collective, as everything that such a system does.
  /// by_reach: those of a node share memory.
  System(std::string const& vendor, int fortran_communicator, bool by_reach);
  ~System();
  System(System const&) = delete;
  System& operator=(System const&) = delete;

  /// Of ranks that are processes, before something collective begins: an error of any of them is thrown on
  /// all, so that nobody waits for one that has left. Ranks of this process are of one mind already.
  /// problem  why this process cannot go on
  /// same     what all must have been given alike, in words
  /// flag     any; returned is whether anybody's is set
  /// Errors   usage  `same` is not; the words of two ranks that differ
  bool agree(std::optional<Error> const& problem, std::string const& same = {}, bool flag = false);
  /// The rows [arrays.first_row, + arrays.rows) of a system of processes. Collective.
  void lay_out(Arrays const& arrays, Choices const& choices);

  /// choices: what `lay_out` or the constructor had, with others of the solve. Where they, but for the
  /// tolerances, or whether there are hooks differ from the last solve's, another solver is made.
  /// b, x: [rows()] in the caller's order, of several right-hand sides column after column; x is the guess
  /// and the answer. single: x is rounded to fp32 in the end, and judged so.
  Result solve(Choices const& choices, Hooks const& hooks, double const* b, double* x, bool single);
  /// The same with b and x in the memory of GPUs.
  Result solve(Choices const& choices, GpuVectors const& vectors);
  /// As Solver::set_time_spent, of the next ones.
  void set_time_spent(double seconds) { time_spent_s_ = seconds; }
  double time_spent_s() const { return time_spent_s_; }
  /// y = A x.
  void multiply(Choices const& choices, double const* x, double* y);
  /// The same pattern with other values.
  void update_values(Arrays const& arrays);
  void update_values(GpuRows const& rows, bool same_bits);
  void close(bool leaving);
  bool closed() const { return team_->closed(); }

  std::int64_t rows() const { return last_row_ - first_row_; }  ///< of this process
  std::int64_t first_row() const { return first_row_; }
  std::int64_t global_rows() const { return global_rows_; }
  std::int64_t entries() const { return entries_; }  ///< of the whole matrix; 0 for a function
  int ranks() const { return ranks_; }
  int gpus() const { return gpus_; }
  double time_input_s() const { return time_input_s_; }
  /// The rows on the GPU are a copy of the host's, which took so long; 0 bytes: they are the caller's.
  void say_copied(std::int64_t bytes, double seconds) {
    copied_bytes_ = bytes;
    time_input_s_ += seconds;
  }
  std::int64_t copied_bytes() const { return copied_bytes_; }
  nanobind::handle callable() const { return callable_; }
  /// With the GIL, when nothing runs any more.
  void drop_callable() {
    operator_ = nullptr;
    auto const dropped = std::move(callable_);  // gone from here before what it holds goes
  }
  /// Who sends what to whom; none of a function.
  std::optional<Communication> const& communication() const { return communication_; }
  /// In words; of a function nothing.
  Provenance::Words const& layout() const { return layout_; }
  /// As Matrix::lost_blocks.
  std::string const& lost_blocks() const { return lost_blocks_; }
  std::int64_t solvers_made() const { return solvers_made_; }

 private:
  struct Rank;
  Rank& rank_of(Transport& transport);
  void make(Arrays const& arrays, MatrixOptions const& options);
  void make(std::function<Matrix(Transport&)> const& make_matrix);
  void forget(Transport& transport);
  void keep(Choices const& choices);
  SolveOptions solve_options(Choices const& choices, Hooks const& hooks, Rank& rank, Transport& transport);
  void bind(Rank& rank, Choices const& choices, Hooks const& hooks, Transport& transport);
  bool show(Rank& rank, Transport& transport, std::span<double const> x);
  void precondition(Rank& rank, Transport& transport, double const* r, double* z);
  double* mine(std::vector<double>& all, Rank const& rank) const;

  int ranks_ = 1, gpus_ = 0, threads_ = 1;
  bool mpi_ = false;
  std::int64_t global_rows_ = 0, first_row_ = 0, last_row_ = 0, entries_ = 0;
  double time_input_s_ = 0, time_spent_s_ = 0;
  std::int64_t copied_bytes_ = 0;
  std::optional<Communication> communication_;
  std::int64_t solvers_made_ = 0;
  Provenance::Words layout_;
  std::string lost_blocks_;
  Operator operator_;
  nanobind::object callable_;
  Hooks const* hooks_ = nullptr;          // of the solve under way
  std::vector<double> shown_, answered_;  // vectors of all ranks that Python reads and writes
  std::vector<std::unique_ptr<Rank>> rank_;
  std::unique_ptr<ThreadTeam> team_;  // last: its threads end first
};

}  // namespace hostless::python
