#pragma once

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "hostless/base/deadline.hpp"
#include "hostless/base/error.hpp"
#include "transport/processes/mesh.hpp"

namespace hostless {

/// While it lives, signals wait in a descriptor instead: SIGCHLD, and those that it was given.
class Signals {
 public:
  explicit Signals(std::vector<int> const& wanted) {
    sigset_t caught;
    sigemptyset(&caught);
    sigaddset(&caught, SIGCHLD);
    for (int const s : wanted) sigaddset(&caught, s);
    descriptor_ = Descriptor(signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK));
    if (descriptor() < 0) {
      throw Error(ErrorCode::environment, std::string("signalfd(): ") + std::strerror(errno) +
                                              " (the ranks cannot be started). Raise the limit of open "
                                              "files (ulimit -n).");
    }
    pthread_sigmask(SIG_BLOCK, &caught, &before_);
  }
  Signals(Signals const&) = delete;
  Signals& operator=(Signals const&) = delete;
  ~Signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  int descriptor() const { return descriptor_.number(); }
  sigset_t const& before() const { return before_; }

  struct Taken {
    int number;
    bool from_terminal;  ///< which tells all processes of a group
  };
  /// Who signals this process and then its whole group, as `timeout` does, means one end: what repeats within
  /// a second is not given again. Those that stop and continue mean themselves each time.
  std::vector<Taken> take() {
    constexpr double same_s = 1.0;
    std::vector<Taken> taken;
    signalfd_siginfo about{};
    while (read(descriptor(), &about, sizeof about) == sizeof about) {  // bounded: SFD_NONBLOCK
      if (about.ssi_signo == SIGCHLD) continue;
      auto const number = static_cast<int>(about.ssi_signo);
      bool const ends = number == SIGINT || number == SIGTERM || number == SIGHUP;
      if (ends) {
        auto const [last, is_first] = same_until_.try_emplace(number);
        if (!is_first && !last->second.passed()) continue;
        last->second = Deadline::after(same_s);
      }
      taken.push_back({number, about.ssi_code == SI_KERNEL});
    }
    return taken;
  }

 private:
  std::map<int, Deadline> same_until_;  // by signal
  sigset_t before_{};
  Descriptor descriptor_;
};

}  // namespace hostless
