#pragma once

#include <chrono>
#include <functional>

#include "hostless/base/deadline.hpp"

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

}  // namespace hostless::queue
