#pragma once
// What the threads of one rank share while they execute a method's text on the host.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "hostless/base/wait.hpp"
#include "hostless/exchange/exchange.hpp"
#include "hostless/operate/sweep_plan.hpp"
#include "hostless/run/run_options.hpp"
#include "hostless/run/state.hpp"
#include "run/slice.impl.hpp"

namespace hostless::host {

/// Thrown out of a text by a thread that can no longer wait with the others; never leaves the run.
struct ThreadLost {};

/// Barrier of the threads of a rank: the last to arrive runs the completion, then all go on. Every wait
/// has a deadline; a thread that does not come breaks the barrier for all.
class ThreadBarrier {
 public:
  ThreadBarrier(int count, WaitLimits limits) : threads_(count), limits_(limits) {}
  template <class Completion>
  void arrive(Completion&& completion) {
    std::uint32_t const generation = generation_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      completing_.store(generation + 1, std::memory_order_release);
      completion();
      arrived_.store(0, std::memory_order_release);  // behind the word: who finds it finds that too
      generation_.store(generation + 1, std::memory_order_release);
      return;
    }
    auto const passed = [&] { return generation_.load(std::memory_order_acquire) != generation; };
    auto const broken = [&] { return broken_.load(std::memory_order_acquire); };
    for (;;) {
      auto const waited = wait_for(passed, broken, Deadline::after(limits_.later_s));
      if (waited == Waited::done) return;
      // The completion waits for other ranks with a deadline of its own: once all have come, nobody is
      // missing here. They are counted until the completion is said to be under way, and that word is never
      // taken back: a thread whose time is over between two of these would call complete threads lost.
      bool const all_came = arrived_.load(std::memory_order_acquire) == threads_ ||
                            completing_.load(std::memory_order_acquire) == generation + 1;
      if (waited == Waited::late && all_came) continue;
      break_up();
      throw ThreadLost{};
    }
  }
  void break_up() { broken_.store(true, std::memory_order_release); }
  bool broken() const { return broken_.load(std::memory_order_acquire); }

 private:
  int threads_;
  WaitLimits limits_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  std::atomic<std::uint32_t> completing_{0};  ///< the generation that the last to arrive brings about
  std::atomic<bool> broken_{false};
};

/// One rank's shared side of a run: partial sums, the exchange, decisions, clocks.
class Engine {
 public:
  Engine(State& state, SweepPlan const& sweep, Multiplier multiplier, Exchange& exchange,
         RunOptions const& options, WaitLimits limits);

  State& state;
  /// Right-hand sides that a text works on at once, each a solve of its own but for the products, the
  /// messages and the sums that they share; and how far their vectors lie apart. `state` alone, unless
  /// `work_on` says otherwise.
  std::span<State> columns;
  std::int64_t column_stride = 0;
  bool past_caches = false;  ///< what a sweep fills of them (`fills`) is stored past the caches
  SweepPlan const& sweep;
  Tiling const& tiling;
  Multiplier multiplier;
  Exchange& exchange;
  RunOptions const& options;
  WaitLimits limits;
  ThreadBarrier barrier;
  SweepOrder order;
  std::atomic<std::uint32_t> ghosts_ready{0};
  std::uint32_t ghosts_wanted =
      0;  ///< the exchange that the next sweep reads; changed only inside the barrier
  std::atomic<bool> failed{false};
  std::function<void(double const*, double*)> function;  ///< a user's operator: products = A (gathered)
  std::vector<double> product;                           ///< what it filled
  std::vector<Exchange*> exchanges_of_context;           ///< left when a rank is lost, as `exchange` is
  PhaseTimes times;
  bool x_is_observed = false;  ///< who hears of an iteration reads x of it, which so may wait for nothing

  static constexpr int widest_sum = 4;
  double* partial(int slice, int column = 0) {
    return partials_.data() + static_cast<std::size_t>(column * tiling.slices + slice) * widest_sum;
  }
  /// So many columns from now on: before a text, and afterwards again those of `state` alone.
  void work_on(std::span<State> states, std::int64_t stride, bool past_caches = false);
  /// Whether gathered fields are formed in the sweep that multiplies them (FormedAhead).
  bool forms_ahead() const { return columns.size() > 1 && multiplier.matrix != nullptr && !function; }
  /// Whether a phase of this gate has a column to work on.
  bool open(Gate gate) const { return any_open(columns.data(), static_cast<int>(columns.size()), gate); }
  bool goes_on(Gate gate) const {
    return loop_goes_on(columns.data(), static_cast<int>(columns.size()), gate);
  }
  /// Adds the slices' partials of K values (tree over slices) of the columns whose gate is open and starts
  /// the sums over ranks, all of them together.
  void begin_sum(Gate gate, int width);
  /// Waits for them, delivers each column its totals, then lets `decide` judge it; a lost peer ends all of
  /// them instead.
  template <int K, class Decision>
  void finish_sum(Gate gate, Into<K> into, Decision const& decide) {
    std::array<double, static_cast<std::size_t>(widest_sum) * most_columns> totals;
    auto const begin = Clock::now();
    bool const complete = exchange.finish_sum({totals.data(), static_cast<std::size_t>(K) * columns.size()});
    times.sums_s += seconds_since(begin);
    if (!complete || failed.load(std::memory_order_acquire)) return lose();
    for (std::size_t c = 0; c < columns.size(); ++c) {
      State& column = columns[c];
      if (!column.open(gate)) continue;
      for (std::size_t k = 0; k < K; ++k) column.at(into.to[k]) = totals[c * K + k];
      if ((exchange.flags() & control::stop) != 0) column.stop = true;
      decide(column);
    }
    observe();
  }
  /// Waits for all ghosts; a lost peer is a failure.
  void finish_exchange();
  /// The last words of a phase without a sum: a failure noticed by any thread ends the solve.
  void check() {
    if (failed.load(std::memory_order_acquire)) lose();
  }
  void lose();
  /// A solve begins: its observer hears of every iteration, whatever the one before it came to.
  void forget_observed() { observed_.fill(-1); }
  void disturb(int thread) {
    if (options.disturb) options.disturb(thread);
  }
  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  void observe();
  std::vector<double> partials_, level_;
  std::array<std::int64_t, most_columns> observed_;
};

}  // namespace hostless::host
