#pragma once
// How far a set-up is, and whether it shall end. Loops of set-up say so to the watch of their thread, where
// there is one; the command line and the Python package put it there and show it.

#include <atomic>
#include <cstdint>
#include <mutex>

namespace hostless {

/// Of one set-up; ranks and helpers that are threads of this process share it.
class SetupWatch {
 public:
  struct Look {
    char const* what = nullptr;      ///< null: nothing is being set up
    std::int64_t done = 0, all = 0;  ///< in the same unit; all 0: nobody knows
  };
  /// what  a literal: signal handlers read it. all  units of work of this rank; 0: unknown
  void begin(char const* what, std::int64_t all);
  void end();
  void add(std::int64_t units) noexcept { done_.fetch_add(units, std::memory_order_relaxed); }
  Look look() const;
  char const* what() const noexcept { return what_.load(std::memory_order_relaxed); }
  /// Makes setup_step throw from now on; a signal handler may call it.
  void stop() noexcept { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const noexcept { return stopped_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> stopped_{false};
  std::atomic<char const*> what_{nullptr};
  std::atomic<std::int64_t> done_{0};
  mutable std::mutex mutex_;
  std::int64_t all_ = 0;
  int inside_ = 0;  // ranks that have begun and not ended
};

/// Use setup_watch. It is here, with what base/thread_team.hpp needs of it, because the GPU libraries start
/// threads too and link nothing else of hostless; theirs are watched by nobody.
inline thread_local SetupWatch* watch_of_thread = nullptr;

/// The watch of this thread, or null. Threads that base/thread_team.hpp starts have that of their starter.
inline SetupWatch* setup_watch() noexcept { return watch_of_thread; }

/// While it lives, this thread is watched.
class WatchedBy {
 public:
  explicit WatchedBy(SetupWatch* watch) noexcept : before_(watch_of_thread) { watch_of_thread = watch; }
  ~WatchedBy() { watch_of_thread = before_; }
  WatchedBy(WatchedBy const&) = delete;
  WatchedBy& operator=(WatchedBy const&) = delete;

 private:
  SetupWatch* before_;
};

/// A piece of set-up that takes long, from here to the end of the block.
class SetupStage {
 public:
  explicit SetupStage(char const* what, std::int64_t all = 0) : watch_(setup_watch()) {
    if (watch_ != nullptr) watch_->begin(what, all);
  }
  ~SetupStage() {
    if (watch_ != nullptr) watch_->end();
  }
  SetupStage(SetupStage const&) = delete;
  SetupStage& operator=(SetupStage const&) = delete;

 private:
  SetupWatch* watch_;
};

/// In every loop of set-up that may run for long, ten times a second or more often: `units` more are done.
/// Errors  aborted  somebody wants the set-up to end
void setup_step(std::int64_t units = 0);

}  // namespace hostless
