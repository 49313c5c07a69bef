#include "queue/group_work.hpp"

#include <algorithm>

#include "queue/communicator_state.hpp"

namespace hostless::queue {

// A group blocks the stream as a whole, and a start may not: the wait moves everything.
void GroupWork::start(Requests const&) {}

void GroupWork::wait(Requests const& requests) {
  has_failed_ = has_failed_ || std::any_of(requests.begin(), requests.end(),
                                           [](auto const& request) { return request->is_lost(); });
  has_failed_ = has_failed_ || requests.front()->communicator->groups()->is_over();
  if (has_failed_) return;
  auto const& communicator = requests.front()->communicator;
  Groups& groups = *communicator->groups();
  Groups::Plan const plan = groups.plan(requests);
  if (plan.messages.empty()) return;  // of a rank alone
  used_.insert(communicator);
  kept_requests_.insert(requests.begin(), requests.end());
  kept_ranks_.insert(groups.ranks());
  bool const is_recording = stream().is_recording();
  has_failed_ = !is_recording && groups.has_one_left(*communicator, plan.peers);
  if (has_failed_) return;
  try {
    stream().move(*groups.ranks(), plan.messages, plan.peers);
  } catch (Error const& e) {
    if (e.code() != ErrorCode::peer_lost) throw;
    has_failed_ = true;
    return;
  }
  if (!is_recording) groups.count_wait();
}

bool GroupWork::looks_lost() {
  bool is_lost = has_failed_;
  for (auto one = used_.begin(); one != used_.end();) {
    auto const communicator = one->lock();
    if (communicator) is_lost = communicator->groups()->looks_lost(*communicator, limit_s()) || is_lost;
    one = communicator ? std::next(one) : used_.erase(one);
  }
  return is_lost;
}

void GroupWork::let_go() {
  kept_requests_.clear();
  kept_ranks_.clear();
}

}  // namespace hostless::queue
