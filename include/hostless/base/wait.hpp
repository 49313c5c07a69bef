#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "hostless/base/deadline.hpp"

namespace hostless {

/// How a waiting thread behaves between two polls: it spins briefly, then gives its core away, then naps.
class Backoff {
 public:
  void pause() {
    ++polls_;
    if (polls_ < spins) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else if (polls_ < yields) {
      give_core_away();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  /// True when it is time to look at the clock and at the abort word: every 64 polls while spinning, and
  /// after every yield or nap, which may have taken milliseconds on a busy machine.
  bool look() const { return polls_ >= spins || (polls_ & 63u) == 0; }

  /// Yields. Who yields to others that compute is back after their time slice, who wakes from a nap goes before
  /// them: so after a yield that took long this thread naps instead, for a while.
  static void give_core_away() {
    auto const from = Clock::now();
    if (from < crowded_until) {
      std::this_thread::sleep_for(std::chrono::microseconds(5));
      return;
    }
    std::this_thread::yield();
    auto const now = Clock::now();
    if (now - from > std::chrono::microseconds(300)) crowded_until = now + std::chrono::milliseconds(50);
  }

 private:
  static constexpr unsigned spins = 200, yields = 20000;
  static inline thread_local Clock::time_point crowded_until;  // as far as this thread has seen
  unsigned polls_ = 0;
};

/// For whoever polls now and then and does not wait: how long peers have been silent. Time between two looks
/// counts as a quarter of the limit at most, because peers may be waiting for what only a poll here moves on.
class Silence {
 public:
  void begin(double limit_s) {
    limit_s_ = limit_s;
    silent_s_ = 0;
    looked_ = Clock::now();
  }
  /// Whether it is time to ask for peers: an endpoint may ask an MPI. Not twice in 50 us.
  bool look() {
    constexpr auto pause = std::chrono::microseconds(50);
    auto const now = Clock::now();
    auto const since = now - looked_;
    if (since < pause) return false;
    looked_ = now;
    silent_s_ += std::min(std::chrono::duration<double>(since).count(), limit_s_ / 4);
    return true;
  }
  bool is_too_long() const { return silent_s_ >= limit_s_; }

 private:
  Clock::time_point looked_;
  double silent_s_ = 0, limit_s_ = 0;
};

/// A deadline for whoever looks at it while it waits. Time between two looks counts as a second at most, and as
/// no more than a quarter of what there is: a process that was stopped (SIGSTOP, ctrl-Z) has given nobody time
/// to answer, and its peers may have been stopped with it.
class Countdown {
 public:
  explicit Countdown(Deadline deadline) : end_(deadline.at), looked_(Clock::now()) {
    constexpr Clock::duration none{}, second = std::chrono::seconds(1);
    longest_ = std::clamp((end_ - looked_) / 4, none, second);
  }
  /// A look.
  bool is_over() {
    auto const now = Clock::now();
    end_ += std::max(now - looked_ - longest_, Clock::duration{});
    looked_ = now;
    return now >= end_;
  }

 private:
  Clock::time_point end_, looked_;
  Clock::duration longest_;  ///< that counts between two looks
};

enum class Waited { done, stopped, late };

/// Polls `ready` until it is true, `stop` is true or the deadline passes, as Countdown counts. Both are called
/// without side conditions.
template <class Ready, class Stop>
Waited wait_for(Ready&& ready, Stop&& stop, Deadline deadline) {
  if (ready()) return Waited::done;
  Countdown countdown(deadline);
  Backoff backoff;
  do {
    if (backoff.look()) {
      if (stop()) return ready() ? Waited::done : Waited::stopped;
      if (countdown.is_over()) return ready() ? Waited::done : Waited::late;
    }
    backoff.pause();
  } while (!ready());
  return Waited::done;
}

}  // namespace hostless
