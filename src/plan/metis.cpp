#include "plan/metis.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>  // bounded: woken when METIS ends; looks for a wish to end meanwhile
#include <csignal>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "base/counted.hpp"
#include "base/setup_watch.hpp"
#include "hostless/base/error.hpp"
#include "plan/metis_signals.hpp"

namespace hostless {
namespace {

// METIS draws from the process' random numbers and traps signals: two calls at once would disturb each other.
// Never destroyed: a thread that was left behind may outlive the statics. A forked child, which has none of
// the threads that may hold it, begins with one of its own.
std::mutex& one_at_a_time() {
  static std::atomic<std::mutex*> mutex{new std::mutex};
  static int const forks = pthread_atfork(nullptr, nullptr, [] {
    MetisSignals::forget_in_child();
    mutex = new std::mutex;
  });
  if (forks != 0) throw std::bad_alloc();
  return *mutex;
}

/// Shared by who waits and the thread that METIS runs on, whichever is there longer.
struct Call {
  MetisGraph graph;
  idx_t parts = 0;
  int seed = 0;
  std::vector<idx_t> part;
  int status = METIS_OK;
  std::mutex mutex;
  std::condition_variable over;  // bounded: see run_metis
  bool ended = false, given_up = false;
  bool no_thread = false;

  bool is_given_up() {
    std::lock_guard const hold(mutex);
    return given_up;
  }
  void end() {
    std::lock_guard const hold(mutex);
    ended = true;
    over.notify_all();
  }
};

void partition(void* of) {
  Call& call = *static_cast<Call*>(of);
  idx_t vertices = static_cast<idx_t>(call.graph.first.size() - 1), constraints = 1, cut = 0;
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = call.seed;
  options[METIS_OPTION_NUMBERING] = 0;
  call.status = METIS_PartGraphKway(&vertices, &constraints, call.graph.first.data(),
                                    call.graph.neighbour.data(), nullptr, nullptr, nullptr, &call.parts,
                                    nullptr, nullptr, options, &cut, call.part.data());
}

/// METIS at work on a thread that ends with it, because it may set no handlers any more.
void run_apart(Call& call) {
  MetisSignals const signals;
  try {
    std::atomic<bool> over{false};
    std::thread metis([&] {
      if (!MetisSignals::run(partition, &call)) call.status = METIS_ERROR_MEMORY;
      over = true;
    });
    // Short at first, for the signals' sake.
    for (auto pause = std::chrono::microseconds(50); !over && !MetisSignals::are_forbidden();
         pause = std::min(2 * pause, std::chrono::microseconds(20'000))) {
      std::this_thread::sleep_for(pause);  // bounded: METIS ends by itself
      MetisSignals::take_away();
    }
    metis.join();  // bounded: as above
  } catch (std::system_error const&) {
    call.no_thread = true;
  }
}

[[noreturn]] void refuse_without_thread() {
  throw Error(ErrorCode::environment,
              "no thread can be started for METIS (it partitions the rows). Raise the limit of processes "
              "(ulimit -u) or of memory (ulimit -v), or use a contiguous partition.");
}

void start(std::shared_ptr<Call> const& call) {
  sigset_t ends, before;
  sigemptyset(&ends);
  for (int const number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, number);
  pthread_sigmask(SIG_BLOCK, &ends, &before);  // a thread has its starter's
  try {
    std::thread([call] {
      {
        std::lock_guard const alone(one_at_a_time());
        if (!call->is_given_up()) run_apart(*call);
      }
      call->end();
    }).detach();
  } catch (std::system_error const&) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    refuse_without_thread();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

std::vector<std::int32_t> run_metis(MetisGraph graph, int parts, int seed) {
  auto const call = std::make_shared<Call>();
  std::size_t const vertices = graph.first.size() - 1;
  call->graph = std::move(graph);
  call->parts = parts;
  call->seed = seed;
  call->part.assign(vertices, 0);
  SetupStage const stage("partitioning by METIS");
  start(call);
  {
    std::unique_lock lock(call->mutex);
    for (auto pause = std::chrono::microseconds(50); !call->ended;
         pause = std::min(2 * pause, std::chrono::microseconds(20'000))) {
      call->over.wait_for(lock, pause);
      try {
        setup_step();
      } catch (...) {
        call->given_up = true;
        throw;
      }
    }
  }
  if (call->no_thread) refuse_without_thread();
  if (call->status != METIS_OK)
    throw Error(ErrorCode::environment,
                fmt::format("METIS could not split {} into {}: {} (no partition, no plan). Use a "
                            "contiguous partition or one from a file",
                            counted(vertices, "vertex", "vertices"), counted(parts, "part"),
                            call->status == METIS_ERROR_MEMORY ? "out of memory" : "it reported an error"));
  return {call->part.begin(), call->part.end()};
}

}  // namespace hostless
