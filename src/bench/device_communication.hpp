#pragma once
// What ranks on GPUs pay inside a persistent kernel for barriers and halos alone, and kernels of two GPUs for
// messages.

#include <string>
#include <vector>

#include "bench/communication.hpp"
#include "hostless/run/run_options.hpp"
#include "hostless/solve/matrix.hpp"
#include "run/gpu/communication.hpp"
#include "solve/gpu_solver/gpu_library.hpp"

namespace hostless::bench {

/// Medians over the blocks of rank 0 and the barriers of one kind, seconds (TraceEntry).
struct PhaseTiming {
  gpu::Phase phase = gpu::Phase::rows;
  int barriers = 0;  ///< of all blocks, that were looked at
  double work_s = 0, together_s = 0, flagged_words_s = 0, decision_s = 0;
  /// From a block's arrival until the decision is taken: barrier and sum, without the block's own part.
  double barrier_s() const { return together_s + flagged_words_s + decision_s; }
};

struct DeviceTiming {
  Timing by_clock;   ///< the kernel's own, without its launch and the wait for the other ranks
  Timing by_events;  ///< around launches, whose steps they share out
  std::vector<PhaseTiming> phases;
  std::string device, kernel;  ///< of rank 0
};

/// Steps of barriers and halos as solves on the same matrix have them, with nothing computed, as one kernel a
/// rank. Every sum and every ghost is compared on the GPU.
///
/// Collective over the matrix' group, the same on every rank. run: gpus and oversubscribe are read.
/// Errors  usage        more ranks than GPUs and no oversubscribe; 0 or more than widest_sum values; a matrix
///                      that was laid out for no GPU
///         environment  no GPU, or too little memory; a sum or a ghost is not what it must be
///         peer_lost    a rank fell silent past its deadline
/// Cost    device memory for the matrix and 4 vectors
DeviceTiming device_steps(Matrix const& matrix, RunOptions const& run, gpu::Communication what,
                          Protocol const& protocol);

/// A matrix without entries beside its diagonal, whose ranks have a row for each accumulator that a plan has:
/// what
/// `device_steps` without a halo works on. Collective.
Matrix uncoupled_matrix(Transport& transport, int gpus);

struct DevicePingPong {
  std::size_t bytes = 0;
  bool by_flagged_words = true;
  int steps = 0;
  Timing by_clock, by_events;  ///< one way
  double bytes_per_s() const { return static_cast<double>(bytes) / by_clock.best(); }
};

/// Messages there and back between kernels of two GPUs, or two of one, as flagged words and as values behind
/// fences. Every value is compared where it arrives. bytes: of the messages, multiples of 8.
///
/// By one thread, for GPUs that this process sees.
/// Errors  usage        other numbers of bytes; no such GPU
///         environment  no GPU, no path between the two, or a message that did not come as it was sent
std::vector<DevicePingPong> device_ping_pong(int first, int second, std::vector<std::size_t> const& bytes,
                                             Protocol const& protocol);

/// Of the blocks' barriers by phase, for tests. Rows are blocks, those not reached have end == 0.
std::vector<PhaseTiming> phases_of(gpu::Trace const& trace);

}  // namespace hostless::bench
