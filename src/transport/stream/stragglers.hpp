#pragma once
// Threads inside a vendor's library that has not returned in time. A process whose statics go while such a
// thread still works on them crashes at its end, whatever it has computed before.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "hostless/base/wait.hpp"

namespace hostless::gpu {

class Stragglers {
 public:
  using Done = std::shared_ptr<std::atomic<bool> const>;

  /// Joined when they are done, at the latest at the end of the process, which waits for them for a while
  /// and, if one is still inside, ends with its exit code and without destructors.
  static void keep(std::thread thread, Done done, double patience_s = 5) {
    Stragglers& all = instance();
    std::lock_guard const lock(all.mutex_);
    all.join_those_done();
    all.running_.push_back({std::move(thread), std::move(done)});
    all.patience_s_ = patience_s;
    if (std::exchange(all.is_registered_, true)) return;
    static_cast<void>(on_exit([](int code, void*) { instance().leave(code); }, nullptr));
  }

 private:
  struct One {
    std::thread thread;
    Done done;
  };
  static Stragglers& instance() {
    static auto* const all = new Stragglers;  // outlives the statics of the process
    return *all;
  }
  void join_those_done() {
    for (One& one : running_)
      if (*one.done) one.thread.join();  // bounded: it has ended
    running_.erase(std::remove_if(running_.begin(), running_.end(),
                                  [](One const& one) { return !one.thread.joinable(); }),
                   running_.end());
  }
  void leave(int code) {
    std::lock_guard const lock(mutex_);
    Deadline const deadline = Deadline::after(patience_s_);
    for (join_those_done(); !running_.empty(); join_those_done()) {
      if (deadline.passed()) {
        static_cast<void>(std::fflush(nullptr));
        _exit(code);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    is_registered_ = false;  // what other handlers leave behind is awaited too
  }

  std::mutex mutex_;
  std::vector<One> running_;
  double patience_s_ = 0;
  bool is_registered_ = false;
};

/// Whether a call into a library, made by a thread of its own, returns within so many seconds. One that does not is
/// left behind, a straggler: what it uses has to last, so it is best its own.
inline bool call_within(double seconds, std::function<void()> const& call) {
  auto const done = std::make_shared<std::atomic<bool>>(false);
  std::thread caller([call, done] {
    call();
    done->store(true);
  });
  Countdown countdown(Deadline::after(seconds));
  while (!done->load() && !countdown.is_over()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (done->load()) {
    caller.join();  // bounded: it has ended
    return true;
  }
  Stragglers::keep(std::move(caller), done);
  return false;
}

}  // namespace hostless::gpu
