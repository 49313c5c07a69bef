// mpirun gives up without ending its ranks in order when it is signalled twice, as `timeout` does it, which
// tells a process and then its group. So it has a group of its own, and is told once.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "hostless/transport/mpi.hpp"
#include "transport/signals.hpp"

namespace hostless {
namespace {

constexpr int code_lost = 4;  // the documented exit code of everything that a machine or a peer did

[[noreturn]] void become_mpirun(std::vector<char*> const& words, sigset_t const& mask, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(code_lost);
  if (isatty(STDIN_FILENO) != 0) {  // who is not in front must not read it, and no rank does
    int const nothing = open("/dev/null", O_RDONLY);  // bounded: a device
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  }
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  execvp(words[0], words.data());
  dprintf(STDERR_FILENO, "hostless: %s: %s (it starts the ranks).\n", words[0], std::strerror(errno));
  _exit(code_lost);
}

// What stops this process, at a terminal, stops the ranks too; what lets it go on reaches it in any case.
void pass_on(int number, pid_t group) {
  kill(-group, number);
  if (number == SIGTSTP) raise(SIGSTOP);
}

int code_of(int status) {
  if (WIFSIGNALED(status)) {
    std::cerr << "hostless: mpirun was ended by signal " << WTERMSIG(status) << " ("
              << strsignal(WTERMSIG(status)) << ").\n";
    return code_lost;
  }
  int const code = WEXITSTATUS(status);
  return code > code_lost ? code_lost : code;  // its own: of ranks that were ended, or could not be started
}

}  // namespace

int run_mpirun(std::vector<std::string> const& command) {
  std::vector<std::string> line = command;
  std::vector<char*> words;
  for (std::string& word : line) words.push_back(word.data());
  words.push_back(nullptr);
  std::cout.flush();
  std::fflush(nullptr);
  Signals signals({SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT});
  pid_t const parent = getpid(), child = fork();
  if (child == 0) become_mpirun(words, signals.before(), parent);
  if (child < 0) {
    throw Error(ErrorCode::environment, std::string("fork(): ") + std::strerror(errno) +
                                            " (mpirun cannot be started). Raise the limit of processes "
                                            "(ulimit -u).");
  }
  setpgid(child, child);
  bool is_told_to_end = false;
  for (int status = 0;;) {
    pollfd one{signals.descriptor(), POLLIN, 0};
    constexpr int look_ms = 100;
    poll(&one, 1, look_ms);  // bounded: look_ms
    for (auto const [number, from_terminal] : signals.take()) {
      is_told_to_end = is_told_to_end || (number != SIGTSTP && number != SIGCONT);
      pass_on(number, child);
    }
    // Then Open MPI's says 1 and MPICH's 0 or 1, whatever the ranks have said.
    if (waitpid(child, &status, WNOHANG) == child) return is_told_to_end ? code_lost : code_of(status);
  }
}

}  // namespace hostless
