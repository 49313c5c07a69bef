#pragma once

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
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  /// True when it is time to look at the clock and at the abort word: every 64 polls while spinning, and
  /// after every yield or nap, which may have taken milliseconds on a busy machine.
  bool look() const { return polls_ >= spins || (polls_ & 63u) == 0; }

 private:
  static constexpr unsigned spins = 200, yields = 20000;
  unsigned polls_ = 0;
};

enum class Waited { done, stopped, late };

/// Polls `ready` until it is true, `stop` is true or the deadline passes. Both are called without side
/// conditions.
template <class Ready, class Stop>
Waited wait_for(Ready&& ready, Stop&& stop, Deadline deadline) {
  for (Backoff backoff;; backoff.pause()) {
    if (ready()) return Waited::done;
    if (backoff.look()) {
      if (stop()) return ready() ? Waited::done : Waited::stopped;
      if (deadline.passed()) return Waited::late;
    }
  }
}

}  // namespace hostless
