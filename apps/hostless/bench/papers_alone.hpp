#pragma once
// The communication of an iteration with nothing computed, for `hostless bench papers`.

#include <optional>
#include <vector>

#include "bench/halo.hpp"
#include "bench/timing.hpp"
#include "hostless/solve/solver.hpp"
#include "input.hpp"

namespace hostless::papers {

/// Exchanges and sums of one matrix, timed when they are first asked for. On the processor all runs have the
/// same ones; on GPUs those of the persistent kernel are timed.
class Alone {
 public:
  Alone(Transport& transport, Matrix const& matrix, InputOptions const& input, MatrixOptions const& layout)
      : transport_(transport), matrix_(matrix), input_(input), layout_(layout) {}

  /// Seconds that an iteration's exchange and sums take by themselves, rising, of the slowest rank: one
  /// exchange and two sums, or one of pipelined-cg. Collective. Errors  usage  a stream run; one rank, which
  /// has nobody to exchange with; and what bench::halo and
  ///                bench::device_steps refuse
  std::vector<double> of(SolveOptions const& solve);

 private:
  bench::HaloTiming const& halo();

  Transport& transport_;
  Matrix const& matrix_;
  InputOptions const& input_;
  MatrixOptions layout_;
  std::optional<bench::HaloTiming> halo_;
};

/// Seconds of an iteration that this solve on the processor waited for ghosts and for other ranks' parts of
/// sums: that of the rank that waited least, for which the others also wait while it computes. Collective.
double exposed_s(Group& group, Result const& result);
/// The share of `alone_s` that was hidden behind computing: 0 where an iteration waited as long, or longer.
double overlapped(double exposed_s, double alone_s);

}  // namespace hostless::papers
