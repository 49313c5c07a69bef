#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/setup_watch.hpp"
#include "hostless/base/stuck.hpp"
#include "hostless/base/wait.hpp"

namespace hostless {

/// A std::thread whose stack does not shrink with RLIMIT_STACK (`ulimit -s`), by which pthread_create goes: the frames
/// of a rank that sets up a matrix need more than such a limit may leave, and may step over the guard page.
class Thread {
 public:
  static constexpr std::size_t least_stack = std::size_t{1} << 20;

  Thread() noexcept = default;
  /// Errors  std::system_error  as std::thread
  explicit Thread(std::function<void()> work) {
    auto mine = std::make_unique<std::function<void()>>(std::move(work));
    Attributes const how;
    if (int const problem = pthread_create(&number_, &how.all, run, mine.get()); problem != 0)
      throw std::system_error(problem, std::generic_category(), "pthread_create");
    static_cast<void>(mine.release());  // run's now
    runs_ = true;
  }
  Thread(Thread&& other) noexcept : number_(other.number_), runs_(std::exchange(other.runs_, false)) {}
  Thread& operator=(Thread&& other) noexcept {
    if (runs_) std::terminate();
    number_ = other.number_;
    runs_ = std::exchange(other.runs_, false);
    return *this;
  }
  ~Thread() {
    if (runs_) std::terminate();
  }
  bool joinable() const { return runs_; }
  void join() {
    pthread_join(number_, nullptr);  // bounded: by whoever calls it
    runs_ = false;
  }

 private:
  struct Attributes {
    Attributes() {
      if (int const problem = pthread_attr_init(&all); problem != 0)
        throw std::system_error(problem, std::generic_category(), "pthread_attr_init");
      std::size_t bytes = 0;
      pthread_attr_getstacksize(&all, &bytes);  // that of RLIMIT_STACK
      if (bytes < least_stack) pthread_attr_setstacksize(&all, least_stack);
    }
    Attributes(Attributes const&) = delete;
    Attributes& operator=(Attributes const&) = delete;
    ~Attributes() { pthread_attr_destroy(&all); }
    pthread_attr_t all;
  };
  static void* run(void* work) noexcept {
    std::unique_ptr<std::function<void()>> const mine(static_cast<std::function<void()>*>(work));
    (*mine)();
    return nullptr;
  }

  pthread_t number_{};
  bool runs_ = false;
};

/// Notices that a member of a team never ends, once another has failed; see when_stuck.
class ThreadTeamWatch {
 public:
  explicit ThreadTeamWatch(int count) : count_(count), running_(count) {}
  /// A member's last words. The first that failed stays here until the others have ended, at the longest
  /// until the deadline.
  void ended(bool failed);
  /// So many could not be started.
  void never_began(int members) { running_.fetch_sub(members); }

 private:
  int count_;
  std::atomic<int> running_;
  std::atomic<bool> watched_{false};
};

/// Calls one(0) .. one(count - 1) at the same time, one(0) on the caller's thread and the others on threads
/// of their own, watched as the caller's (setup_watch), and returns when all have ended. No call may throw;
/// each says whether all went well: false where the others are to end too.
///
/// Where not all threads can be started, one(0) is not called, give_up() is, once: it must end the waiting of
/// those that have been started.
///
/// Returns  `count`, or how many there could have been, the caller's among them, if they are fewer
template <class One, class GiveUp>
int run_thread_team(int count, One const& one, GiveUp const& give_up) {
  ThreadTeamWatch ends(count);
  auto const member = [&](int number) { ends.ended(!one(number)); };
  std::vector<Thread> others;
  bool started = true;
  try {
    others.reserve(static_cast<std::size_t>(count));
    for (int number = 1; number < count; ++number)
      others.emplace_back([&member, number, watch = setup_watch()] {
        WatchedBy const watched(watch);
        member(number);
      });
  } catch (std::system_error const&) {
    started = false;
    ends.never_began(count - static_cast<int>(others.size()));
    give_up();
  }
  if (started) member(0);
  for (auto& other : others) other.join();  // bounded: when_stuck, else it is the caller's function that runs
  return static_cast<int>(others.size()) + 1;
}

/// Calls work(part) for every part in [0, parts), on up to `threads` threads, the caller's among them, and
/// returns when all have ended. Where fewer threads can be started, they do it all. Watched as the caller's.
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
  std::vector<Thread> others;
  others.reserve(static_cast<std::size_t>(threads > 0 ? threads : 1));
  try {
    for (int number = 1; number < threads && number < parts; ++number)
      others.emplace_back([&help, watch = setup_watch()] {
        WatchedBy const watched(watch);
        help();
      });
  } catch (std::system_error const&) {  // fewer, then
  }
  help();
  for (auto& other : others) other.join();  // bounded: parts compute, they wait for nobody
  for (auto const& one : failed)
    if (one) std::rethrow_exception(one);
}

/// Parts for so many threads and so many things: several a thread, so that a slow one holds nobody up.
inline int parts_for(int threads, std::int64_t things) {
  std::int64_t const wanted = threads > 1 ? 4 * std::int64_t{threads} : 1;
  return static_cast<int>(things < wanted ? (things < 1 ? 1 : things) : wanted);
}

}  // namespace hostless
