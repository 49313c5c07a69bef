#pragma once

#include <nanobind/nanobind.h>

#include <atomic>

namespace hostless::python {

/// The interpreter ends: jobs stop at their next sum, and none begins any more.
inline std::atomic<bool> ending{false};
/// Threads that work without the GIL. Whoever wants it back when the interpreter has ended would be ended by
/// Python where nothing may be thrown.
inline std::atomic<int> threads_away{0};

/// Without the GIL for as long as it lives.
class Away {
 public:
  Away() = default;
  Away(Away const&) = delete;
  Away& operator=(Away const&) = delete;

 private:
  struct Counted {
    Counted() { ++threads_away; }
    ~Counted() { --threads_away; }
  };
  Counted counted_;  // goes last
  nanobind::gil_scoped_release release_;
};

/// With the GIL, at the interpreter's end: asks all to stop, and waits for them, up to a minute. In a child
/// of fork nobody else is away.
void end_all();

}  // namespace hostless::python
