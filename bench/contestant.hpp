#pragma once
// What the two sides of bench/petsc_compare.cpp share.

#include <time.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hostless/problems/problems.hpp"
#include "hostless/solve/solver.hpp"

namespace hostless::bench {

struct Task {
  ProblemOptions problem;
  int block = 1;
  int iterations = 100;
  int repeats = 5;
  bool jacobi = false;
  bool half_storage = false;  ///< PETSc's SBAIJ too
  FormatRequest format;
  int ranks = 1, rank = 0;
};

/// Ends the MPI job with this text.
[[noreturn]] void fail(std::string const& text);

/// A solve's wall time and the processor time of one rank, spinning included; of the slowest rank.
struct Cost {
  double wall = 0, processor = 0;
};

class Stopwatch {
 public:
  Cost stop() const {
    return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(),
            processor_seconds() - processor_};
  }

 private:
  static double processor_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double processor_ = processor_seconds();
};

/// What takes its turn: solve() starts from x = 0 and returns the seconds of the slowest rank; answer() is
/// this rank's share of its last x. Both collective over MPI_COMM_WORLD.
class Contestant {
 public:
  virtual ~Contestant() = default;
  virtual Cost solve() = 0;
  virtual std::vector<double> answer() = 0;
  /// Of hostless' last solve.
  virtual Result const* result() const { return nullptr; }
  std::string side, method, storage;
  std::vector<double> seconds, processor_seconds;
};

/// `rhs` is this rank's share of the right-hand side; rows are in PETSc's order on PETSc's ranks.
std::vector<std::unique_ptr<Contestant>> petsc_contestants(Task const& task, RowSource const& source,
                                                           std::vector<double> const& rhs);
/// hostless' three methods on `matrix`, whose transport is MPI.
std::vector<std::unique_ptr<Contestant>> hostless_contestants(Task const& task, Matrix const& matrix,
                                                              std::vector<double> const& rhs);
/// The threads of MPI rank 0 as ranks, which make matrix and solver anew for every turn (not timed).
std::unique_ptr<Contestant> threads_contestant(Task const& task);

std::vector<double> rhs_of(RowSource const& rows);
MatrixOptions contiguous(Task const& task);
/// Bytes a second that all ranks together read from memory, measured by rank 0.
double bandwidth_of_all_ranks(Task const& task);

}  // namespace hostless::bench
