#pragma once

#include <chrono>

namespace hostless {

using Clock = std::chrono::steady_clock;

/// A point in time after which a wait gives up. Every wait of the library takes one.
struct Deadline {
  Clock::time_point at;
  static Deadline after(double seconds) {
    constexpr double years = 1e8;  // three of them: longer ones would overflow the clock
    std::chrono::duration<double> const wait(seconds < years ? seconds : years);
    return {Clock::now() + std::chrono::duration_cast<Clock::duration>(wait)};
  }
  bool passed() const { return Clock::now() >= at; }
};

/// Seconds a wait may take: `first_s` for the first of a solve (peers may still be setting up), `later_s`
/// after it. The environment variable HOSTLESS_DEADLINE_SCALE multiplies both; read once.
struct WaitLimits {
  double first_s = 60.0;
  double later_s = 10.0;
  static WaitLimits from_environment();
};

}  // namespace hostless
