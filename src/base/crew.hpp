#pragma once

#include <system_error>
#include <thread>
#include <vector>

namespace hostless {

/// Calls one(0) .. one(count - 1) at the same time, one(0) on the caller's thread and the others on threads
/// of their own, and returns when all have ended. No call may throw.
///
/// Where not all threads can be started, one(0) is not called, give_up() is, once: it must end the waiting of
/// those that have been started.
///
/// Returns  `count`, or how many there could have been, the caller's among them, if they are fewer
template <class One, class GiveUp>
int run_crew(int count, One const& one, GiveUp const& give_up) {
  std::vector<std::thread> others;
  bool started = true;
  try {
    others.reserve(static_cast<std::size_t>(count));
    for (int number = 1; number < count; ++number) others.emplace_back(one, number);
  } catch (std::system_error const&) {
    started = false;
    give_up();
  }
  if (started) one(0);
  for (auto& other : others) other.join();
  return static_cast<int>(others.size()) + 1;
}

}  // namespace hostless
