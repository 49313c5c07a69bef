#include "hostless/base/stuck.hpp"

#include <atomic>

#include "base/thread_team.hpp"

namespace hostless {
namespace {

std::atomic<WhenStuck> handler_of_process{nullptr};

}  // namespace

void when_stuck(WhenStuck handler) { handler_of_process.store(handler); }

void ThreadTeamWatch::ended(bool failed) {
  if (failed && !watched_.exchange(true)) {
    Deadline const deadline = Deadline::after(WaitLimits::from_environment().first_s);
    wait_for([this] { return running_.load() == 1; }, [] { return false; }, deadline);
    int const missing = running_.load() - 1;
    WhenStuck const handler = handler_of_process.load();
    if (missing > 0 && handler != nullptr) {
      handler(
          std::to_string(missing) + " of " + std::to_string(count_) +
          " threads (ranks, or threads of a rank) did not come back after another had failed (they are "
          "stuck, and a "
          "thread "
          "cannot be ended alone). Look at what they run; raise HOSTLESS_DEADLINE_SCALE if it is only slow.");
    }
  }
  running_.fetch_sub(1);
}

}  // namespace hostless
