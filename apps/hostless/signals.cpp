#include "signals.hpp"

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/repeated_wish.hpp"
#include "base/whole_file.hpp"
#include "hostless/transport/launcher.hpp"
#include "hostless/transport/mpi.hpp"
#include "setup_shown.hpp"

namespace hostless {
namespace {

using Heard = RepeatedWish::Heard;
enum class Manner : int { at_once, tidily, with_an_answer };

constexpr int code_ended = 4;  // documented: ended before it was done
constexpr suseconds_t tidy_us = 800'000;

std::atomic<SetupWatch*> watched{nullptr};
std::atomic<Manner> manner{Manner::at_once};
std::atomic<int> wish{0};
RepeatedWish wished;
std::atomic<pid_t> companion{0};
std::atomic<bool> speaks{true}, of_mpirun{false};

static_assert(std::atomic<Manner>::is_always_lock_free);

void say(char const* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // nobody listens
}

// Those that end this command.
constexpr int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU};

char const* name_of(int number) {
  return number == SIGINT    ? "ctrl-C"
         : number == SIGHUP  ? "SIGHUP"
         : number == SIGXCPU ? "SIGXCPU"
                             : "SIGTERM";
}

// First asked, because launchers have ranks and folders to tidy up.
void end_group(pid_t group) {
  constexpr int looks = 14;
  timespec const between{0, 50'000'000};
  kill(-group, SIGTERM);
  for (int look = 0; look < looks; ++look) {
    waitpid(group, nullptr, WNOHANG);
    if (kill(-group, 0) != 0) return;
    nanosleep(&between, nullptr);  // bounded: by `looks`
  }
  kill(-group, SIGKILL);
}

[[noreturn]] void leave(int number) {
  if (setup_line_is_drawn()) say("\r\033[K");
  if (speaks.load()) {
    say("hostless: ended by ");
    say(name_of(number));
    if (number == SIGHUP) say(" (its terminal has gone)");
    if (number == SIGXCPU) say(" (its limit of processor time)");
    if (number == SIGTERM && of_mpirun.load()) say(" (mpirun sends it at ctrl-C too)");
    SetupWatch const* const watch = watched.load();
    char const* const what = watch == nullptr ? nullptr : watch->what();
    if (what != nullptr) {
      say(" while ");
      say(what);
    }
    say(" (there is no answer yet). Start it again.\n");
  }
  if (pid_t const group = companion.load(); group > 0) end_group(group);
  remove_unfinished_files();
  _exit(code_ended);
}

Heard hear(int number) {
  // The kernel says every second that processor time is up, until the hard limit ends the process.
  if (number == SIGXCPU && wish != 0) return Heard::again;
  Heard const heard = wished.hear();
  if (heard == Heard::first) wish = number;
  return heard;
}

void wish_for_an_end(int number) {
  if (hear(number) != Heard::another) return;
  remove_unfinished_files();
  signal(number, SIG_DFL);
  raise(number);
}

void tidy_up(int number) {
  Heard const heard = hear(number);
  if (heard == Heard::another) leave(number);
  if (heard == Heard::again) return;
  if (SetupWatch* const watch = watched.load()) watch->stop();
  itimerval const timer{{0, 0}, {0, tidy_us}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

void on_signal(int number) {
  int const before = errno;
  switch (manner.load()) {
    case Manner::at_once:
      leave(number);
    case Manner::tidily:
      tidy_up(number);
      break;
    case Manner::with_an_answer:
      wish_for_an_end(number);
      break;
  }
  errno = before;
}

void on_alarm(int) { leave(wish.load()); }

void handle(int number, void (*handler)(int)) {
  struct sigaction before {
  }, action{};
  // Who started this in the background, or under nohup, wants it to go on.
  if (sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) return;
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

}  // namespace

// The one whose standard streams these are.
bool is_first_rank() {
  if (started_by_launcher()) return std::strcmp(std::getenv("HOSTLESS_RANK"), "0") == 0;
  if (!started_by_mpi()) return true;
  for (char const* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"})
    if (char const* const rank = std::getenv(name)) return std::strcmp(rank, "0") == 0;
  return true;
}

void catch_signals(SetupWatch& watch) {
  watched = &watch;
  speaks = is_first_rank();
  of_mpirun = started_by_mpi();
  for (int const number : ending) handle(number, on_signal);
  // What is longer than a file may become is an error of its writer, which tidies up.
  signal(SIGXFSZ, SIG_IGN);
  // A command dies when nobody reads what it prints, as all do. A rank must not: the others would lose it.
  if (started_by_launcher() || started_by_mpi()) outlive_readers();
}

void outlive_readers() { signal(SIGPIPE, SIG_IGN); }

void let_setup_tidy() {
  handle(SIGALRM, on_alarm);
  manner = Manner::tidily;
}
void let_solve_answer() { manner = Manner::with_an_answer; }
char const* words_of_end(int number) {
  if (number == SIGINT) return "interrupted by ctrl-C (SIGINT)";
  if (number == SIGHUP) return "asked to end by SIGHUP (its terminal has gone)";
  if (number == SIGXCPU) return "asked to end by SIGXCPU (its limit of processor time)";
  return of_mpirun.load() ? "asked to end by SIGTERM (mpirun sends it at ctrl-C too)"
                          : "asked to end by SIGTERM";
}
int asked_to_end() noexcept { return wish.load(std::memory_order_relaxed); }
void take_along(pid_t group) noexcept { companion = group; }

EndsLater::EndsLater() {
  sigset_t ends;
  sigemptyset(&ends);
  for (int const number : ending) sigaddset(&ends, number);
  pthread_sigmask(SIG_BLOCK, &ends, &before_);
}
void EndsLater::over() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
void EndsLater::as_any_program() const {
  for (int const number : {SIGINT, SIGTERM}) signal(number, SIG_DFL);
  for (int const number : {SIGHUP, SIGXCPU}) {
    struct sigaction before {};
    bool const is_ignored = sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
    if (!is_ignored) signal(number, SIG_DFL);
  }
  over();
}

}  // namespace hostless
