#pragma once
// How a matrix is worked on: by which ranks and GPUs, and with what else that every method takes. Options
// that `solve` and `bench solve` share.

#include "hostless/solve/solver.hpp"
#include "input.hpp"
#include "options/taken_options.hpp"
#include "ranks.hpp"

namespace hostless {

/// --gpus and --oversubscribe.
void add_gpus(CLI::App& command, int& gpus, bool& oversubscribe);
/// A rank for each GPU, unless somebody has said how many there are; under mpirun, what it started.
/// Errors  usage  what check_gpus refuses of `run`, or fewer ranks than GPUs
void share_gpus(RankOptions& ranks, RunOptions const& run);

struct WorkOptions {
  RankOptions ranks;
  TakenOptions taken;  ///< `solve` has more in it

  void add(CLI::App& command);
  int gpus() const { return taken.number("gpus"); }
  /// Of a solve in that run. Symmetry is not sampled: readers compare every entry, generators are symmetric
  /// by construction. Errors  usage  unknown words
  SolveOptions solve_options(RunKind kind) const;
  /// Errors  usage  options that contradict each other
  MatrixOptions matrix_options(InputOptions const& input, LayoutOptions const& layout) const;
};

}  // namespace hostless
