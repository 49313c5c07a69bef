#include "away.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>  // bounded: waited on for as long as end_all is given
#include <mutex>
#include <new>
#include <thread>

#include "hostless/base/deadline.hpp"
#include "hostless/base/error.hpp"

namespace hostless::python {
namespace {

constexpr auto between_looks = std::chrono::milliseconds(100);

// Whoever holds the mutex does not want the GIL.
std::mutex mutex;
// bounded: as long as end_all is given
std::condition_variable all_back;
int threads_away = 0;
unsigned forks = 0;
std::thread::id ender;  // who called end_all

void refuse_when_ended() {
  if (ending && ender != std::this_thread::get_id())
    throw Error(ErrorCode::usage,
                "the interpreter has ended (nothing begins any more). Wait for threads before it does.");
}

void begin_child() {
  // bounded: nobody waits on it
  new (&all_back) std::condition_variable;  // who waited on the old one did not come along
  threads_away = 0;
  ++forks;
  nanobind::set_leak_warnings(false);  // what threads hold that did not come along is held for ever
  if (ender != std::this_thread::get_id()) ending = false;
  mutex.unlock();
}

}  // namespace

// Counted before the GIL goes: so end_all either sees this thread or is seen by it.
Away::Away() {
  {
    std::lock_guard const hold(mutex);
    refuse_when_ended();
    ++threads_away;
    forks_ = forks;
  }
  state_ = PyEval_SaveThread();
}

Away::~Away() {
  try {
    PyEval_RestoreThread(state_);
  } catch (...) {  // Python ends the thread
    stay();
  }
  std::lock_guard const hold(mutex);
  if (forks_ == forks && --threads_away == 0) all_back.notify_all();
}

Back::Back() {
  try {
    state_ = PyGILState_Ensure();
  } catch (...) {  // Python ends the thread
    stay();
  }
}

void check_not_ended() {
  std::lock_guard const hold(mutex);
  refuse_when_ended();
}

void stay() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));  // bounded: the process ends
}

void end_all(double seconds) {
  // Daemon threads keep what they hold for ever, which is no fault of counting.
  auto const frames = nanobind::module_::import_("sys").attr("_current_frames")();
  if (nanobind::len(frames) > 1) nanobind::set_leak_warnings(false);
  {
    std::lock_guard const hold(mutex);
    ender = std::this_thread::get_id();
    ending = true;
  }
  auto const until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  while (Clock::now() < until) {
    {
      nanobind::gil_scoped_release const release;
      std::unique_lock lock(mutex);
      auto const look = std::min(until, Clock::now() + between_looks);
      if (all_back.wait_until(lock, look, [] { return threads_away == 0; })) return;
    }
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  }
}

void watch_forks() {
  if (pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, begin_child) != 0)
    throw Error(ErrorCode::environment, "no memory to watch for forks. Free some.");
}

}  // namespace hostless::python
