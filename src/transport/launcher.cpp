// Starts ranks on this machine, passes on what they write, and makes one exit code of theirs.
#include "hostless/transport/launcher.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string_view>

#include "base/child.hpp"
#include "hostless/base/deadline.hpp"
#include "transport/processes/mesh.hpp"
#include "transport/processes/processes_here.hpp"
#include "transport/signals.hpp"

namespace hostless {
namespace {

constexpr int code_lost = 4;      // the documented exit code of everything that a machine or a peer did
constexpr int code_unsolved = 1;  // of a result that all ranks have: nothing has failed
constexpr int look_ms = 50;       // how often the launcher looks at the clock and at its children
constexpr double kill_s = 1.0;    // between SIGTERM and SIGKILL
constexpr std::size_t longest_line = 1 << 16;

[[noreturn]] void cannot(std::string const& what, int error, char const* advice) {
  throw Error(ErrorCode::environment,
              what + ": " + std::strerror(error) + " (the ranks cannot be started). " + advice);
}

// Passes on whole lines, so that those of several ranks do not mix.
class Stream {
 public:
  Stream(Descriptor from, int to) : from_(std::move(from)), to_(to) {}
  int descriptor() const { return from_.number(); }
  void pass_on() {
    char buffer[4096];
    ssize_t got = 0;
    while (from_.number() >= 0 &&
           (got = read(from_.number(), buffer, sizeof buffer)) > 0) {  // bounded: O_NONBLOCK
      waiting_.append(buffer, static_cast<std::size_t>(got));
      auto const end = waiting_.rfind('\n');
      if (end != waiting_.npos) put(end + 1);
      if (waiting_.size() > longest_line) put(waiting_.size());
    }
    if (got == 0) finish();
  }
  void finish() {
    put(waiting_.size());
    from_ = Descriptor();
  }

 private:
  void put(std::size_t bytes) {
    std::size_t done = 0;
    while (done < bytes) {
      ssize_t const wrote = write(to_, waiting_.data() + done, bytes - done);
      if (wrote > 0) {
        done += static_cast<std::size_t>(wrote);
      } else if (wrote < 0 && errno == EAGAIN) {  // whoever shares it has said that nobody waits for room
        pollfd room{to_, POLLOUT, 0};
        poll(&room, 1, look_ms);  // bounded: look_ms
      } else if (wrote < 0 && errno != EINTR) {
        break;  // nobody reads: the ranks still go on
      }
    }
    waiting_.erase(0, bytes);
  }
  Descriptor from_;
  int to_;
  std::string waiting_;
};

struct Pipe {
  Descriptor out, in;
};
Pipe new_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) cannot("no pipe", errno, "Raise the limit of open files (ulimit -n).");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& w : words) all.push_back(w.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment_of(int rank, int ranks, std::string const& folder) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view const text(*entry);
    bool const ours = text.starts_with("HOSTLESS_RANK=") || text.starts_with("HOSTLESS_SIZE=") ||
                      text.starts_with("HOSTLESS_RENDEZVOUS=");
    if (!ours) all.emplace_back(text);
  }
  all.push_back("HOSTLESS_RANK=" + std::to_string(rank));
  all.push_back("HOSTLESS_SIZE=" + std::to_string(ranks));
  all.push_back("HOSTLESS_RENDEZVOUS=" + folder);
  return all;
}

// What the child needs between fork and exec, where nothing may be allocated.
struct Start {
  char** words;
  char** environment;
  int out, err;  // -1: this process's own
  int problem;   // errno goes here when exec fails
  sigset_t const* mask;
  pid_t parent;
};

[[noreturn]] void become_rank(Start const& start) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != start.parent) _exit(code_lost);
  if (start.out >= 0) {
    int const nothing = open("/dev/null", O_RDONLY);  // bounded: a device
    if (nothing >= 0) dup2(nothing, 0);
    dup2(start.out, 1);
    dup2(start.err, 2);
  }
  pthread_sigmask(SIG_SETMASK, start.mask, nullptr);
  execvpe(start.words[0], start.words, start.environment);
  int const error = errno;
  if (write(start.problem, &error, sizeof error) != sizeof error) _exit(code_lost);
  _exit(code_lost);
}

class Ranks {
 public:
  Ranks(Launch const& launch, Rendezvous const& rendezvous, Signals const& signals)
      : launch_(launch), words_(launch.command), pids_(static_cast<std::size_t>(launch.ranks), -1) {
    try {
      for (int r = 0; r < launch.ranks; ++r) start(r, rendezvous, signals);
    } catch (...) {
      end_all();
      throw;
    }
  }
  Ranks(Ranks const&) = delete;
  Ranks& operator=(Ranks const&) = delete;
  ~Ranks() { end_all(); }

  bool running() const {
    return std::any_of(pids_.begin(), pids_.end(), [](pid_t p) { return p > 0; });
  }
  int code() const { return code_; }
  bool failed() const { return code_ != 0; }
  void fail(int code) {
    if (code_ == 0) code_ = code;
    by_cause_ = true;
  }
  void send(int signal) {
    sent_ = true;
    for (pid_t const p : pids_) {
      if (p > 0) kill(p, signal);
    }
  }
  void collect() {
    for (std::size_t r = 0; r < pids_.size(); ++r) {
      int status = 0;
      if (pids_[r] > 0 && waitpid(pids_[r], &status, WNOHANG) == pids_[r]) note(r, status);
    }
  }
  std::vector<Stream>& streams() { return streams_; }

 private:
  void start(int rank, Rendezvous const& rendezvous, Signals const& signals) {
    auto environment = environment_of(rank, launch_.ranks, rendezvous.path());
    auto const words = pointers(words_), variables = pointers(environment);
    Pipe problem = new_pipe(), out, err;
    if (rank > 0) {
      out = new_pipe();
      err = new_pipe();
    }
    Start const how{const_cast<char**>(words.data()),
                    const_cast<char**>(variables.data()),
                    out.in.number(),
                    err.in.number(),
                    problem.in.number(),
                    &signals.before(),
                    getpid()};
    pid_t const child = fork();
    if (child == 0) become_rank(how);
    if (child < 0) cannot("fork() of rank " + std::to_string(rank), errno, "Use fewer ranks.");
    pids_[static_cast<std::size_t>(rank)] = child;
    problem.in = Descriptor();
    int error = 0;
    if (read(problem.out.number(), &error, sizeof error) == sizeof error) {  // bounded: exec closes it
      cannot("'" + launch_.command[0] + "' cannot be run", error, "Check the command.");
    }
    if (rank > 0) {
      listen_to(std::move(out.out), STDOUT_FILENO);
      listen_to(std::move(err.out), STDERR_FILENO);
    }
  }
  void listen_to(Descriptor from, int to) {
    fcntl(from.number(), F_SETFL, O_NONBLOCK);
    streams_.emplace_back(std::move(from), to);
  }
  // Ranks that lost a peer say 4: the code of the one that was lost says more. A 1 is no cause: all say it of a solve that
  // has not converged, and a 4 beside it is of rank 0, whose output is lost.
  void note(std::size_t rank, int status) {
    pids_[rank] = -1;
    if (WIFSIGNALED(status)) {
      // Others may have noticed, said 4 and been collected before it. What was passed on and ended a rank has
      // ended the job, unless it was what follows a failure.
      bool const others_failed = !sent_ && code_ == code_lost;
      if (!by_cause_ && (code_ == 0 || others_failed)) {
        std::cerr << "hostless: rank " << rank << " was ended by signal " << WTERMSIG(status) << " ("
                  << strsignal(WTERMSIG(status)) << "). The other ranks cannot go on.\n";
        fail(code_lost);
      }
      return;
    }
    int const code = WEXITSTATUS(status);
    if (code == 0 || by_cause_) return;
    bool const is_cause = code != code_lost && code != code_unsolved;
    if (code_ == 0 || code_ == code_unsolved || is_cause) code_ = code;
    by_cause_ = is_cause;
  }
  void end_all() {
    send(SIGKILL);
    for (pid_t& p : pids_) {
      if (p > 0) end_child(p);
      p = -1;
    }
  }

  Launch const& launch_;
  std::vector<std::string> words_;
  std::vector<pid_t> pids_;
  std::vector<Stream> streams_;
  int code_ = 0;
  bool by_cause_ = false;  // code_ is final
  bool sent_ = false;      // signals that end ranks from now on may be ours
};

// After a failure: time to end by themselves, then SIGTERM, then SIGKILL.
class Patience {
 public:
  explicit Patience(double grace_s) : grace_s_(grace_s) {}
  void look(Ranks& ranks) {
    if (step_ == 0 && ranks.failed()) wait(grace_s_);
    if (step_ == 0 || !until_.passed()) return;
    ranks.send(step_ == 1 ? SIGTERM : SIGKILL);
    wait(kill_s);
  }
  void hurry() {
    step_ = 1;
    until_ = Deadline::after(0);
  }

 private:
  void wait(double seconds) {
    ++step_;
    until_ = Deadline::after(seconds);
  }
  double grace_s_;
  int step_ = 0;
  Deadline until_{};
};

void wait_for_news(Ranks& ranks, Signals const& signals) {
  std::vector<pollfd> all{{signals.descriptor(), POLLIN, 0}};
  for (Stream const& s : ranks.streams()) all.push_back({s.descriptor(), POLLIN, 0});
  poll(all.data(), all.size(), look_ms);  // bounded: look_ms
  for (Stream& s : ranks.streams()) s.pass_on();
}

}  // namespace

int launch(Launch const& launch) {
  if (launch.ranks < 1 || launch.command.empty()) {
    throw Error(ErrorCode::usage, "a launch of " + std::to_string(launch.ranks) + " ranks of " +
                                      std::to_string(launch.command.size()) +
                                      " words (it needs at least one of each). Give a command.");
  }
  std::cout.flush();
  std::fflush(nullptr);
  Rendezvous const rendezvous;
  Signals signals({SIGINT, SIGTERM, SIGHUP, SIGXCPU});
  Ranks ranks(launch, rendezvous, signals);
  Patience patience(launch.grace_s);
  bool const limited = launch.time_limit_s > 0;
  Deadline const limit = Deadline::after(limited ? launch.time_limit_s : 0.0);
  bool in_time = true;
  while (ranks.running()) {
    wait_for_news(ranks, signals);
    for (auto const [signal, from_terminal] : signals.take())
      if (!from_terminal) ranks.send(signal);  // what a terminal says, they have heard
    ranks.collect();
    if (in_time && limited && limit.passed() && ranks.running()) {
      std::cerr << "hostless: the time limit of " << launch.time_limit_s
                << " s has passed. The ranks are ended.\n";
      in_time = false;
      ranks.fail(code_lost);
      patience.hurry();
    }
    patience.look(ranks);
  }
  for (Stream& s : ranks.streams()) {
    s.pass_on();
    s.finish();
  }
  return ranks.code();
}

}  // namespace hostless
