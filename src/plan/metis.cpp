#include "plan/metis.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>  // bounded: woken when METIS ends; looks for a wish to end meanwhile
#include <csignal>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "base/setup_watch.hpp"
#include "hostless/base/error.hpp"

namespace hostless {
namespace {

// METIS draws from the process' random numbers and traps signals: two calls at once would disturb each other.
// Never destroyed: a thread that was left behind may outlive the statics. A forked child, which has none of
// the threads that may hold it, begins with one of its own.
std::mutex& one_at_a_time() {
  static std::atomic<std::mutex*> mutex{new std::mutex};
  static int const forks = pthread_atfork(nullptr, nullptr, [] { mutex = new std::mutex; });
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
  std::atomic<bool> sets_handlers{false};  ///< METIS was not kept from it

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

void partition(Call& call) {
  idx_t vertices = static_cast<idx_t>(call.graph.first.size() - 1), constraints = 1, cut = 0;
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = call.seed;
  options[METIS_OPTION_NUMBERING] = 0;
  call.status = METIS_PartGraphKway(&vertices, &constraints, call.graph.first.data(),
                                    call.graph.neighbour.data(), nullptr, nullptr, nullptr, &call.parts,
                                    nullptr, nullptr, options, &cut, call.part.data());
}

// METIS sets a handler of SIGTERM, more than once a call, which jumps to where METIS began: into nowhere on
// any other thread. METIS's own thread has the signal blocked, and from now on may not set its handler: the
// kernel answers EPERM, which METIS does not look at. False where the kernel filters no system calls.
bool forbid_handlers_of_termination() {
  std::array<sock_filter, 6> steps{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIGTERM, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  sock_fprog filter{steps.size(), steps.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Where they cannot be forbidden: takes METIS's handler away as soon as it is seen, and nobody else's.
class TerminationSignal {
 public:
  TerminationSignal() { keep(); }
  void restore() {
    if (!keep()) sigaction(SIGTERM, &kept_, nullptr);
  }

 private:
  bool keep() {
    struct sigaction now {};
    sigaction(SIGTERM, nullptr, &now);
    bool const ours = !is_metis(reinterpret_cast<void*>(now.sa_handler));
    if (ours) kept_ = now;
    return ours;
  }
  static bool is_metis(void* handler) {
    Dl_info its{}, metis{};
    return dladdr(handler, &its) != 0 && dladdr(reinterpret_cast<void*>(&METIS_PartGraphKway), &metis) != 0 &&
           its.dli_fbase == metis.dli_fbase;
  }

  struct sigaction kept_ {};
};

void start(std::shared_ptr<Call> const& call) {
  sigset_t ends, before;
  sigemptyset(&ends);
  for (int const number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, number);
  pthread_sigmask(SIG_BLOCK, &ends, &before);  // a thread has its starter's
  try {
    std::thread([call] {
      {
        std::lock_guard const alone(one_at_a_time());
        call->sets_handlers = !forbid_handlers_of_termination();  // of this thread, which ends with the call
        if (!call->is_given_up()) partition(*call);
      }
      call->end();
    }).detach();
  } catch (std::system_error const&) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw Error(ErrorCode::environment,
                "no thread can be started for METIS (it partitions the rows). Raise the limit of processes "
                "(ulimit -u), or use a contiguous partition.");
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
  TerminationSignal termination;
  start(call);
  {
    std::unique_lock lock(call->mutex);
    // Short at first, for the signal's sake.
    for (auto pause = std::chrono::microseconds(50); !call->ended;
         pause = std::min(2 * pause, std::chrono::microseconds(20'000))) {
      call->over.wait_for(lock, pause);
      if (call->sets_handlers) termination.restore();
      try {
        setup_step();
      } catch (...) {
        call->given_up = true;
        throw;
      }
    }
    if (call->sets_handlers) termination.restore();
  }
  if (call->status != METIS_OK)
    throw Error(
        ErrorCode::environment,
        fmt::format("METIS could not split {} vertices into {} parts: {} (no partition, no plan). Use a "
                    "contiguous partition or one from a file",
                    vertices, parts,
                    call->status == METIS_ERROR_MEMORY ? "out of memory" : "it reported an error"));
  return {call->part.begin(), call->part.end()};
}

}  // namespace hostless
