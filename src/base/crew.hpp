#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
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

/// Calls work(part) for every part in [0, parts), on up to `threads` threads, the caller's among them, and
/// returns when all have ended. Where fewer threads can be started, they do it all.
///
/// Errors  what the lowest part threw that threw; the others have been called all the same
template <class Work>
void share_out(int threads, int parts, Work const& work) {
  std::vector<std::exception_ptr> failed(static_cast<std::size_t>(parts));
  std::atomic<int> next{0};
  auto const help = [&] {
    for (int part = next++; part < parts; part = next++) {
      try {
        work(part);
      } catch (...) {
        failed[static_cast<std::size_t>(part)] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  others.reserve(static_cast<std::size_t>(threads > 0 ? threads : 1));
  try {
    for (int number = 1; number < threads && number < parts; ++number) others.emplace_back(help);
  } catch (std::system_error const&) {  // fewer, then
  }
  help();
  for (auto& other : others) other.join();
  for (auto const& one : failed)
    if (one) std::rethrow_exception(one);
}

/// Parts for so many threads and so many things: several a thread, so that a slow one holds nobody up.
inline int parts_for(int threads, std::int64_t things) {
  std::int64_t const wanted = threads > 1 ? 4 * std::int64_t{threads} : 1;
  return static_cast<int>(things < wanted ? (things < 1 ? 1 : things) : wanted);
}

}  // namespace hostless
