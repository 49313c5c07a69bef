#pragma once
// A text on the threads of a rank.

#include <exception>
#include <string>
#include <vector>

#include "base/thread_team.hpp"
#include "hostless/base/error.hpp"
#include "run/host_run.impl.hpp"

namespace hostless::host {

/// Runs text(run) on all threads of this rank. A thread that is lost ends the solve with `peer_lost` on all
/// of them.
///
/// Errors  what a thread threw (a user's function, memory), after all threads and ranks were told;
///         environment:
/// fewer threads than were asked for
template <class Run = ThreadRun, class Text>
void on_threads(Engine& engine, int count, Text const& text) {
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(count));
  auto const give_up = [&] {
    engine.failed.store(true, std::memory_order_release);
    engine.barrier.break_up();
  };
  auto const one = [&](int thread) {
    try {
      Run run(engine, thread, count);
      text(run);
      return true;
    } catch (ThreadLost const&) {
      give_up();
    } catch (...) {
      thrown[static_cast<std::size_t>(thread)] = std::current_exception();
      give_up();
    }
    return false;
  };
  int const started = run_thread_team(count, one, give_up);
  engine.check();
  if (started < count) {
    throw Error(ErrorCode::environment, "only " + std::to_string(started) + " of " + std::to_string(count) +
                                            " threads can be started. Use fewer (--lanes).");
  }
  for (auto const& error : thrown) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace hostless::host
