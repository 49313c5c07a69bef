#pragma once
// What the threads of one rank share while they execute a method's text on the host.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
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
      inside_.store(true, std::memory_order_release);
      completion();
      arrived_.store(0, std::memory_order_relaxed);
      inside_.store(false, std::memory_order_release);
      generation_.store(generation + 1, std::memory_order_release);
      return;
    }
    auto const passed = [&] { return generation_.load(std::memory_order_acquire) != generation; };
    auto const broken = [&] { return broken_.load(std::memory_order_acquire); };
    for (;;) {
      auto const waited = wait_for(passed, broken, Deadline::after(limits_.later_s));
      if (waited == Waited::done) return;
      // The completion waits for other ranks with a deadline of its own: as long as it runs, nobody is
      // missing here.
      if (waited == Waited::late && inside_.load(std::memory_order_acquire)) continue;
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
  std::atomic<bool> inside_{false}, broken_{false};
};

/// One rank's shared side of a run: partial sums, the exchange, decisions, clocks.
class Engine {
 public:
  Engine(State& state, SweepPlan const& sweep, Multiplier multiplier, Exchange& exchange,
         RunOptions const& options, WaitLimits limits);

  State& state;
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

  static constexpr int widest_sum = 4;
  double* partial(int slice) { return partials_.data() + static_cast<std::size_t>(slice) * widest_sum; }
  /// Adds the slices' partials of K values (tree over slices) and starts the sum over ranks.
  void begin_sum(int width);
  /// Waits for it, delivers the totals, then lets `decide` judge; a lost peer ends the solve instead.
  template <int K, class Decision>
  void finish_sum(Into<K> into, Decision const& decide) {
    std::array<double, widest_sum> totals{};
    auto const begin = Clock::now();
    bool const complete = exchange.finish_sum({totals.data(), static_cast<std::size_t>(K)});
    times.sums_s += seconds_since(begin);
    if (!complete || failed.load(std::memory_order_acquire)) return lose();
    for (int k = 0; k < K; ++k) state.at(into.to[k]) = totals[static_cast<std::size_t>(k)];
    if ((exchange.flags() & control::stop) != 0) state.stop = true;
    decide(state);
    observe();
  }
  /// Waits for all ghosts; a lost peer is a failure.
  void finish_exchange();
  /// The last words of a phase without a sum: a failure noticed by any thread ends the solve.
  void check() {
    if (failed.load(std::memory_order_acquire)) lose();
  }
  void lose();
  void disturb(int thread) {
    if (options.disturb) options.disturb(thread);
  }
  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  void observe();
  std::vector<double> partials_, level_;
  std::int64_t observed_ = -1;
};

}  // namespace hostless::host
