#include "watched.hpp"

#include <nanobind/nanobind.h>

#include <chrono>
#include <condition_variable>  // bounded: looked at ten times a second, and woken when the work ends
#include <exception>
#include <mutex>
#include <system_error>

#include "away.hpp"
#include "base/setup_line.hpp"
#include "base/thread_team.hpp"
#include "hostless/base/error.hpp"

namespace nb = nanobind;

namespace hostless::python {
namespace {

constexpr auto between_looks = std::chrono::milliseconds(100);

// With the GIL for as long as it takes; what a handler raised.
std::exception_ptr raised_by_signals() {
  Back const back;
  try {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

struct Work {
  SetupWatch watch;
  std::mutex mutex;
  std::condition_variable over;  // bounded: see above
  bool ended = false;
  std::exception_ptr failed;

  void run(std::function<void()> const& work) {
    WatchedBy const watched(&watch);
    std::exception_ptr problem;
    try {
      work();
    } catch (...) {
      problem = std::current_exception();
    }
    std::lock_guard const hold(mutex);
    failed = problem;
    ended = true;
    over.notify_all();
  }
};

}  // namespace

void run_watched(std::function<void()> const& work) {
  Work mine;
  std::exception_ptr raised;
  bool const ends_early = !ending;  // else the interpreter's end has begun it
  {
    Away const away;
    SetupLine line(true);
    Thread thread;
    try {
      thread = Thread([&] { mine.run(work); });
    } catch (std::system_error const&) {
      throw Error(ErrorCode::environment,
                  "no thread can be started (the work needs one). Raise ulimit -u or -v.");
    }
    std::unique_lock lock(mine.mutex);
    while (!mine.over.wait_for(lock, between_looks, [&] { return mine.ended; })) {
      lock.unlock();
      line.draw(mine.watch);
      bool const over = ends_early && ending;
      if (!raised && !over) raised = raised_by_signals();
      if (raised || over) mine.watch.stop();
      lock.lock();
    }
    lock.unlock();
    thread.join();  // bounded: it has ended
  }
  if (raised) std::rethrow_exception(raised);
  if (mine.failed) std::rethrow_exception(mine.failed);
}

}  // namespace hostless::python
