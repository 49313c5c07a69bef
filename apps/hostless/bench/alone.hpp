#pragma once
// An iteration's communication without its computing, and the other way round: for what `hostless bench
// papers` and `hostless bench solve` say of their overlap.

#include <map>
#include <optional>
#include <vector>

#include "bench/halo.hpp"
#include "bench/queued.hpp"
#include "bench/timing.hpp"
#include "hostless/solve/solver.hpp"
#include "input.hpp"

namespace hostless {

/// A matrix as ranks have laid it out, and what it came from.
struct LaidOut {
  Transport& transport;
  Matrix const& matrix;
  InputOptions const& input;
  MatrixOptions const& layout;
};

/// Exchanges and sums of one matrix, timed when they are first asked for. On the processor all runs have the
/// same ones; on GPUs those of the persistent kernel are timed inside one, those of the other runs by the
/// transport that carries for them, on a stream.
class CommunicationAlone {
 public:
  explicit CommunicationAlone(LaidOut const& laid_out) : at_(laid_out) {}

  /// Seconds that an iteration's exchange and sums take by themselves, rising, of the slowest rank: one
  /// exchange and two sums, or one of pipelined-cg. Collective.
  /// Errors  usage  one rank, which has nobody to exchange with; other methods than these two, and a
  ///                preconditioner that exchanges; and what bench::halo, bench::device_steps and
  ///                bench::stream_halo refuse
  std::vector<double> of(SolveOptions const& solve);

 private:
  bench::Halo what() const;
  bench::HaloTiming const& halo();
  std::vector<double> on_stream(SolveOptions const& solve, bool one_sum);

  LaidOut at_;
  std::optional<bench::HaloTiming> halo_;
};

/// The work of the rank that has most of it, as a matrix of its own on one rank, on the first GPU of its
/// machine where there are GPUs: its rows, without what they read of other ranks.
class ComputingAlone {
 public:
  ComputingAlone(LaidOut const& laid_out, std::uint64_t seed) : at_(laid_out), seed_(seed) {}

  /// Seconds of an iteration, rising, on every rank. Collective; the other ranks wait meanwhile.
  /// Errors  those of the matrix and of the solver; environment  where it made no iteration
  std::vector<double> of(SolveOptions const& solve);

 private:
  void lay_out();
  void lay_out_own_rows(RowSource const* shared);

  LaidOut at_;
  std::uint64_t seed_;
  int busiest_ = -1;                   // rank; -1: nothing is laid out yet
  std::unique_ptr<Transport> single_;  // of that rank
  std::optional<Matrix> own_;
};

}  // namespace hostless
