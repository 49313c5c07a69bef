#pragma once
// A bound solve's run: executes the text from the state in device memory until it has ended or paused.

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <thread>

#include "run/told_column.hpp"
#include "solve/gpu/instance.hpp"
#include "solve/gpu/part_sweeps.hpp"

namespace hostless::gpu {

/// The host's side of a run: asked now and then while the GPU works.
struct Watch {
  std::function<bool()> const& stop;
  std::function<void(std::int64_t iteration, double rr, int column)> progress;

  void tell(std::span<State const> states) const {
    int const column = told_column(states.data(), static_cast<int>(states.size()));
    if (column < 0) return;
    State const& told = states[static_cast<std::size_t>(column)];
    progress(told.iteration, told.rr, column);
  }
};

class Runner {
 public:
  virtual ~Runner() = default;
  /// Makes what depends on the arguments' values, before anybody measures; again when one has changed.
  virtual void prepare(Arguments const& arguments) = 0;
  /// Blocks.
  virtual void run(Arguments const& arguments, Watch const& watch, Cost& cost) = 0;
  virtual std::string describe(Arguments const& arguments) const = 0;
  /// With several ranks: says where others store what they have to say.
  virtual void lend(PeerMemory& memory, Arguments const& arguments) const = 0;
  virtual void forget_barriers(std::uint32_t last_epoch) = 0;
  /// Of its own arrays.
  virtual bool guards_hold() const = 0;
};

/// Calls look() a thousand times a second until all that was queued is done; solves that end soon are left
/// alone.
template <class Look>
void watch_stream(Stream const& stream, Look const& look) {
  auto const begin = std::chrono::steady_clock::now();
  while (!stream.done()) {
    if (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(2)) continue;
    look();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

struct RunChoice {
  RunKind kind = RunKind::persistent;
  std::string why;
};
/// Why the persistent kernel cannot run; empty when it can.
std::string persistent_problem(Problem const& problem, Layout const& layout, Instance const& instance);
/// The problem's, or what `automatic` comes to by the model (run_model.hpp).
/// Errors  usage  the run that was asked for does not fit
RunChoice choose_run(Problem const& problem, Layout const& layout, Instance const& instance);
/// What `automatic` comes to where the persistent kernel cannot be made, for that reason.
RunChoice choose_phases(Problem const& problem, Layout const& layout, Instance const& instance,
                        std::string const& reason);

/// With a stream endpoint: which tiles a sweep works on while the ghosts of the others travel; none
/// where that does not pay, or what HOSTLESS_GPU_OVERLAP says; none in graphs of ranks that share a GPU.
PartedTiles choose_parts(Problem const& problem, int tiles);

/// Adds what the run needs to the arguments.
std::unique_ptr<Runner> make_runner(RunKind kind, Arguments& arguments, Instance const& instance,
                                    Problem const& problem);

}  // namespace hostless::gpu
