#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "hostless/base/wait.hpp"

namespace hostless::queue {

/// Calls what a waiting host wants to look at ten times a second; never where it wants nothing.
class Looks {
 public:
  explicit Looks(std::function<void()> const& look) : look_(look) {}
  explicit operator bool() const { return static_cast<bool>(look_); }
  void operator()() {
    if (!look_) return;
    constexpr auto between = std::chrono::milliseconds(100);
    auto const now = Clock::now();
    if (now - last_ < between) return;
    last_ = now;
    look_();
  }

 private:
  std::function<void()> const& look_;
  Clock::time_point last_ = Clock::now();
};

/// Whether a wait has to end without its messages: nothing has come for its limit, or one of its peers has left. Time
/// in which nobody looks is nobody's silence (Silence).
class LossWatch {
 public:
  /// limit_s: of this wait, which begins.
  void begin(double limit_s) {
    silence_.begin(limit_s);
    left_.reset();
  }
  /// Whether it is time to ask for peers.
  bool look() { return silence_.look(); }
  /// After a look. has_left: a peer is known to have.
  bool must_end(bool has_left) {
    constexpr double grace_s = 1.0;  // what it sent before may be on its way, over a library
    if (!has_left) {
      left_.reset();
    } else if (!left_) {
      left_.emplace().begin(grace_s);
    } else if (left_->look() && left_->is_too_long()) {
      return true;
    }
    return silence_.is_too_long();
  }

 private:
  Silence silence_;
  std::optional<Silence> left_;  // since it is known
};

}  // namespace hostless::queue
