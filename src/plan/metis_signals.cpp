#include "plan/metis_signals.hpp"

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <metis.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstddef>

// METIS's own: frees what its call on this thread has taken. Some METIS may hide it, then that much is lost.
extern "C" void gk_malloc_cleanup(int shows_statistics) __attribute__((weak));

namespace hostless {
namespace {

// Read by a handler: nothing here is allocated, constructed late or destroyed.
struct {
  struct sigaction ours, abort, termination;  // the last two: the program's
  std::atomic<bool> is_set{false}, is_filtered{false}, at_work{false};
  pthread_t thread;  // METIS's, while it is at work
  sigjmp_buf back;   // to before it
} here;

void pass_on(int number, siginfo_t* info, void* context) {
  struct sigaction const& program = here.abort;
  bool const with_info = (program.sa_flags & SA_SIGINFO) != 0;
  bool const is_default = !with_info && program.sa_handler == SIG_DFL;
  if (is_default || (program.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
    struct sigaction nothing {};
    nothing.sa_handler = SIG_DFL;
    sigaction(number, &nothing, nullptr);
  }
  if (is_default) {
    raise(number);  // comes when this handler returns
  } else if (with_info) {
    program.sa_sigaction(number, info, context);
  } else if (program.sa_handler != SIG_IGN) {
    program.sa_handler(number);
  }
}

void on_abort(int number, siginfo_t* info, void* context) {
  if (!here.at_work || pthread_equal(pthread_self(), here.thread) == 0) return pass_on(number, info, context);
  if (info->si_code == SI_TKILL && info->si_pid == getpid()) siglongjmp(here.back, 1);
  kill(getpid(), number);  // from outside, and here it is blocked: another thread takes it
}

bool forbid_handlers() {
  std::array<sock_filter, 7> steps{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIGTERM, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIGABRT, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  sock_fprog filter{steps.size(), steps.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

bool is_metis(struct sigaction const& action) {
  Dl_info its{}, metis{};
  return dladdr(reinterpret_cast<void*>(action.sa_handler), &its) != 0 &&
         dladdr(reinterpret_cast<void*>(&METIS_PartGraphKway), &metis) != 0 &&
         its.dli_fbase == metis.dli_fbase;
}

bool is_ours(struct sigaction const& action) { return action.sa_sigaction == here.ours.sa_sigaction; }

struct sigaction handler_of(int number) {
  struct sigaction now {};
  sigaction(number, nullptr, &now);
  return now;
}

}  // namespace

MetisSignals::MetisSignals() {
  sigaction(SIGTERM, nullptr, &here.termination);
  sigaction(SIGABRT, nullptr, &here.abort);
  here.ours = here.abort;  // with its mask, and its stack
  here.ours.sa_sigaction = on_abort;
  here.ours.sa_flags = (here.abort.sa_flags & ~static_cast<int>(SA_RESETHAND | SA_NODEFER)) | SA_SIGINFO;
  here.is_filtered = false;
  here.is_set = true;
  sigaction(SIGABRT, &here.ours, nullptr);
}

MetisSignals::~MetisSignals() {
  here.is_set = false;
  struct sigaction const now = handler_of(SIGABRT);
  if (is_ours(now) || is_metis(now)) sigaction(SIGABRT, &here.abort, nullptr);
  if (is_metis(handler_of(SIGTERM))) sigaction(SIGTERM, &here.termination, nullptr);
}

bool MetisSignals::run(void (*work)(void*), void* argument) {
  here.is_filtered = forbid_handlers();  // of this thread, for as long as it lives
  here.thread = pthread_self();
  if (sigsetjmp(here.back, 1) != 0) {
    here.at_work = false;
    if (gk_malloc_cleanup != nullptr) gk_malloc_cleanup(0);
    return false;
  }
  here.at_work = true;
  work(argument);
  here.at_work = false;
  return true;
}

bool MetisSignals::are_forbidden() { return here.is_filtered; }

void MetisSignals::take_away() {
  if (here.is_filtered) return;
  struct sigaction const now = handler_of(SIGTERM);
  if (is_metis(now)) {
    sigaction(SIGTERM, &here.termination, nullptr);
  } else {
    here.termination = now;  // the program may set another meanwhile
  }
  if (is_metis(handler_of(SIGABRT))) sigaction(SIGABRT, &here.ours, nullptr);
}

void MetisSignals::forget_in_child() {
  if (!here.is_set) return;
  // No library may be asked whose a handler is: another thread may have held any lock.
  if (is_ours(handler_of(SIGABRT)) || !here.is_filtered) sigaction(SIGABRT, &here.abort, nullptr);
  if (!here.is_filtered) sigaction(SIGTERM, &here.termination, nullptr);
  here.at_work = here.is_set = false;
}

}  // namespace hostless
