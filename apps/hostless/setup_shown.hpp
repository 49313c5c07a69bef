#pragma once

#include <atomic>
#include <condition_variable>  // bounded: it is waited for with a time
#include <mutex>
#include <thread>

#include "base/setup_line.hpp"

namespace hostless {

/// Shows what this thread's watch is at (SetupLine) until it ends or goes, from a thread of its own: what is
/// at work has no time for it.
class SetupShown {
 public:
  explicit SetupShown(bool wanted);
  ~SetupShown() { end(); }
  SetupShown(SetupShown const&) = delete;
  SetupShown& operator=(SetupShown const&) = delete;
  void end();

 private:
  void draw();

  SetupWatch const* watch_;
  SetupLine line_;
  std::mutex mutex_;
  std::condition_variable over_;  // bounded: see draw
  bool ended_ = false;
  std::thread thread_;
};

/// Whether a line stands on the terminal that has to be erased; for signal handlers.
bool setup_line_is_drawn() noexcept;

}  // namespace hostless
