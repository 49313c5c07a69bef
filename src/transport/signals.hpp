#pragma once

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/repeated_wish.hpp"
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
  /// A RepeatedWish to end is not given again. Those that stop and continue mean themselves each time.
  std::vector<Taken> take() {
    std::vector<Taken> taken;
    signalfd_siginfo about{};
    while (read(descriptor(), &about, sizeof about) == sizeof about) {  // bounded: SFD_NONBLOCK
      if (about.ssi_signo == SIGCHLD) continue;
      auto const number = static_cast<int>(about.ssi_signo);
      bool const ends = number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGXCPU;
      if (ends && wishes_[number].hear() == RepeatedWish::Heard::again) continue;
      taken.push_back({number, about.ssi_code == SI_KERNEL});
    }
    return taken;
  }

 private:
  std::map<int, RepeatedWish> wishes_;  // by signal
  sigset_t before_{};
  Descriptor descriptor_;
};

}  // namespace hostless
