#pragma once

#include <signal.h>
#include <sys/wait.h>

#include <optional>

#include "hostless/base/wait.hpp"

namespace hostless {

/// What waitpid says of a child that ends before the deadline. nap_s: more than that of all waits, between two looks.
inline std::optional<int> wait_for_child(pid_t child, Deadline deadline, double nap_s = 0) {
  int status = 0;
  pid_t seen = 0;
  auto const ended = [&] {
    seen = waitpid(child, &status, WNOHANG);
    if (seen == 0 && nap_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(nap_s));
    return seen != 0;
  };
  wait_for(
      ended, [] { return false; }, deadline);
  if (seen != child) return {};
  return status;
}

/// Kills a child, with its group where it leads one, and takes it in. The kernel may hold it back for ever (a
/// file system that does not answer): then it is left to whoever collects orphans.
inline void end_child(pid_t child, bool with_group = false) {
  constexpr double longest_s = 5;
  if (!with_group || kill(-child, SIGKILL) != 0) kill(child, SIGKILL);  // it may not lead a group yet
  static_cast<void>(wait_for_child(child, Deadline::after(longest_s)));
}

}  // namespace hostless
