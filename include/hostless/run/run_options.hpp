#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "hostless/run/state.hpp"
#include "hostless/transport/gpu_transport.hpp"

namespace hostless {

/// Who pulls the trigger.
enum class RunKind : std::uint8_t {
  host,        ///< one thread a rank, phase by phase
  persistent,  ///< several threads a rank (GPU: one kernel) execute the whole text; a reduction is the
               ///< barrier
  graph,       ///< the text is recorded once and replayed
  stream,      ///< on a GPU: a kernel a phase, launched by the host
  automatic    ///< "auto": on a GPU the fastest that fits (`tune`), on the processor `host`
};
char const* name(RunKind kind);
/// Errors  usage  unknown name
RunKind run_kind_from(char const* text);

/// For which numbers the host of a GPU's stream run waits; none of these can change a result.
enum class HostWaits : std::uint8_t {
  when_needed,      ///< it looks at the state now and then
  every_iteration,  ///< for the residual, before it launches the next iteration (Trotter et al. 2025, 3.1.2)
  every_sum         ///< for whatever a sum gives, as hosts that compute with it have to (listing 1 there)
};
char const* name(HostWaits waits);
/// Errors  usage  unknown name
HostWaits host_waits_from(char const* text);

/// Iterations between two looks at the gates, at most: nobody hears a signal or sees a limit in between.
constexpr int longest_check_interval = 1'000'000;

/// Right-hand sides that a text can work on at once.
constexpr int most_columns = 8;

struct RunOptions {
  RunKind kind = RunKind::host;
  /// GPUs of each machine that its ranks work on, in the runs `persistent`, `graph` and `stream`; rank number
  /// r of a machine has GPU r mod gpus, whatever nodes were declared, so that with fewer ranks some have
  /// nothing to do. 0: on the processor. Cannot change a result.
  int gpus = 0;
  /// Several ranks may share a GPU, with gpus > 0: for tests of protocols. Slow.
  bool oversubscribe = false;
  /// With gpus > 0; all but `peer` also carry what one rank has to say to itself. Cannot change a result.
  GpuTransport gpu_transport = GpuTransport::automatic;
  /// For `automatic` on a GPU: measures the runs once a matrix and keeps what was found in the user's cache
  /// folder; false: a model chooses. Cannot change a result.
  bool tune = true;
  /// On a GPU: a Chrome trace of the phases of the first iterations, by the GPU's own clocks.
  std::string profile_file;
  /// On a GPU: those iterations are recorded for Result::iteration_times, which costs them time; with a
  /// profile file they are anyhow. The processor's are always known.
  bool trace = false;
  /// On a GPU: a persistent kernel returns after about that long and is launched again, so that what else
  /// waits for the GPU waits no longer. Cannot change a result.
  double longest_launch_s = 0.9;
  /// Host threads a rank; more than one only for `persistent`. Where the matrix is halved BSR, those beyond
  /// FormatRequest::threads have nothing to do in sweeps.
  int threads = 1;
  /// Iterations between two looks at the gates, at most longest_check_interval; cannot change a result. On a
  /// GPU for `stream` alone, whose host chooses 1 to 64 when this is 1.
  int check_interval = 1;
  /// Of the run `stream`; the two that are not `when_needed` are there to measure what such waits cost.
  HostWaits host_waits = HostWaits::when_needed;
  /// Called by one thread of the rank after every decision that completed an iteration, with the column (0
  /// where there is one right-hand side); true asks all ranks to stop.
  std::function<bool(State const&, int column)> observer;
  /// Polled at every sum: true asks all ranks to stop (signal, time limit).
  std::function<bool()> stop_requested;
  /// What stop_requested said yes for, in words for Result::message ("ctrl-C (SIGINT)"); may be empty.
  std::function<std::string()> stop_reason;
  /// Whether a function of the user (an operator, a preconditioner) has failed in this solve, and what its vectors are now
  /// is not what the iteration should have made of them: no checkpoint is written of these. May be empty.
  std::function<bool()> function_failed;
  /// Called before every barrier of threads, with the thread: schedule and fault tests delay or throw in it.
  std::function<void(int)> disturb;
};

/// Whether so many ranks of one machine may run this way.
/// Errors  usage  more ranks than GPUs and no oversubscribe, which in turn needs GPUs; gpus below 0; a GPU
///                transport without GPUs, or one that this run or so many ranks cannot use
void check_gpus(RunOptions const& run, int ranks);

/// Seconds by phase, measured by thread 0; waiting for ghosts is inside `sweep_s` and also counted apart.
struct PhaseTimes {
  double publish_s = 0, sweep_s = 0, rows_s = 0;
  double sums_s = 0;    ///< waiting for the other ranks' contributions
  double ghosts_s = 0;  ///< waiting for ghosts
};

}  // namespace hostless
