#pragma once
// Work without the GIL, and what becomes of it when the interpreter ends or the process forks.

#include <nanobind/nanobind.h>

#include <atomic>

namespace hostless::python {

/// The interpreter ends: jobs that were begun before stop at their next sum.
inline std::atomic<bool> ending{false};

/// Without the GIL for as long as it lives. Whoever wants it back when the interpreter has gone gets no
/// further, where Python would end the thread amid functions that may not throw.
///
/// Errors  usage  the interpreter has ended, and on another thread
class Away {
 public:
  Away();
  ~Away();
  Away(Away const&) = delete;
  Away& operator=(Away const&) = delete;

 private:
  unsigned forks_ = 0;  // that had been when it was counted
  PyThreadState* state_ = nullptr;
};

/// With the GIL again for as long as it lives, on a thread that is away. No further, as above.
class Back {
 public:
  Back();
  ~Back() { PyGILState_Release(state_); }
  Back(Back const&) = delete;
  Back& operator=(Back const&) = delete;

 private:
  PyGILState_STATE state_ = PyGILState_UNLOCKED;
};

/// Errors  usage  as Away
void check_not_ended();
/// Where a thread stays that the interpreter has gone from, until the process ends.
[[noreturn]] void stay();
/// With the GIL, at the interpreter's end: from here on only this thread begins anything. Asks all to stop,
/// and waits for them. Errors  what a signal raises in Python
void end_all(double seconds);
/// Once, before anything else: in a child of fork nobody else is away, and nothing has ended.
void watch_forks();

}  // namespace hostless::python
