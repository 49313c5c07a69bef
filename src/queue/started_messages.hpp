#pragma once

#include <atomic>
#include <cstddef>

namespace hostless::queue {

/// Messages that are started and whose waits were not reached: at most so many, whoever starts them at once.
class StartedMessages {
 public:
  explicit StartedMessages(std::size_t most) : most_(most) {}
  std::size_t most() const { return most_; }
  std::size_t now() const { return now_.load(); }
  /// False where there is no room for all of them: nothing was added.
  bool add(std::size_t messages) {
    std::size_t now = now_.load();
    do {
      if (messages > most_ || now > most_ - messages) return false;
    } while (!now_.compare_exchange_weak(now, now + messages));
    return true;
  }
  void remove(std::size_t messages) { now_.fetch_sub(messages); }

 private:
  std::size_t const most_;
  std::atomic<std::size_t> now_{0};
};

}  // namespace hostless::queue
