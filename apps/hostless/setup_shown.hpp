#pragma once
// What people see on a terminal while the command is at work.

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>  // bounded: it is waited for with a time
#include <mutex>
#include <thread>

#include "base/setup_line.hpp"
#include "hostless/solve/solver.hpp"
#include "standard_output.hpp"

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

/// One line on a terminal, rewritten five times a second; nothing when piped.
class ProgressLine {
 public:
  explicit ProgressLine(bool shown)
      : shown_(shown && isatty(STDERR_FILENO) != 0), begin_(Clock::now()), last_(begin_) {}
  void step(Progress const& p) {
    if (!shown_) return;
    auto const now = Clock::now();
    if (now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    double const s = std::chrono::duration<double>(now - begin_).count();
    tell("\r\033[Kiteration {}   |r| {:.3e} (target {:.3e})   {:.0f} iterations/s   {:.1f} s", p.iteration,
         p.residual_norm, p.target, static_cast<double>(p.iteration) / s, s);
    drawn_ = true;
  }
  void clear() {
    if (drawn_) tell("\r\033[K");
    drawn_ = false;
  }

 private:
  bool shown_, drawn_ = false;
  Clock::time_point begin_, last_;
};

}  // namespace hostless
