#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>

namespace hostless {

/// Who signals a process and then its whole group, as `timeout`, mpirun and hostless' own launcher do, means
/// one end: what comes again within a second is no other wish. May be asked in a signal handler.
class RepeatedWish {
 public:
  enum class Heard { first, again, another };

  /// Of the signal that has just come; the second begins anew where it is another wish.
  Heard hear() noexcept {
    timespec clock{};
    clock_gettime(CLOCK_MONOTONIC, &clock);
    return hear_at(clock.tv_sec * second_ns + clock.tv_nsec + 1);
  }
  /// now: in nanoseconds, not 0, of a clock that does not go back
  Heard hear_at(std::int64_t now) noexcept {
    std::int64_t before = 0;
    if (at_.compare_exchange_strong(before, now)) return Heard::first;
    if (now - before <= second_ns) return Heard::again;
    at_ = now;
    return Heard::another;
  }

 private:
  static constexpr std::int64_t second_ns = 1'000'000'000;
  std::atomic<std::int64_t> at_{0};  // 0: never
  static_assert(std::atomic<std::int64_t>::is_always_lock_free);
};

}  // namespace hostless
