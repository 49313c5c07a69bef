#pragma once
// What ctrl-C, SIGTERM, SIGXCPU, and SIGHUP where it is not ignored (nohup) do to this command. As long as there
// is nothing to save it ends at once, wherever it is: in METIS, in a read that hangs. Handlers do no more than the
// standard lets them.

#include <sys/types.h>

#include "base/setup_watch.hpp"

namespace hostless {

/// From here on any of them ends the process with one line (of rank 0) and exit code 4. The line names
/// what `watch` is at; it must live as long as the process.
void catch_signals(SetupWatch& watch);
/// From here on output that nobody reads ends nothing: it is what finish_output tells.
void outlive_readers();
/// From here on the loops of set-up have a second to end by themselves, and to remove what they have half
/// written.
void let_setup_tidy();
/// From here on the first one is a wish (asked_to_end), because there is an x to save. A repeat within a
/// second is the same wish: `timeout` signals a process and then its group. A later one ends the process.
void let_solve_answer();
/// Whether this is the one of all ranks whose standard streams the job has, as far as the launcher's
/// variables say.
bool is_first_rank();
/// The signal that was a wish, or 0.
int asked_to_end() noexcept;
/// Who has asked, for the answer: under mpirun ctrl-C comes to ranks as SIGTERM.
char const* words_of_end(int number);
/// A process group that dies with this process; 0: none any more.
void take_along(pid_t group) noexcept;

/// While it lives, all of them wait: for a fork, whose child is to be taken along.
class EndsLater {
 public:
  EndsLater();
  ~EndsLater() { over(); }
  EndsLater(EndsLater const&) = delete;
  EndsLater& operator=(EndsLater const&) = delete;
  void over() const;
  /// In the child: they end it, as they end any program.
  void as_any_program() const;

 private:
  sigset_t before_{};
};

}  // namespace hostless
