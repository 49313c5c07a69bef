#include "queue/request_state.hpp"

#include <algorithm>

#include "queue/communicator_state.hpp"

namespace hostless::queue {

std::string RequestState::words() const {
  static constexpr char const* names[] = {"send",       "ready send", "receive", "barrier",
                                          "all-reduce", "broadcast",  "match"};
  std::string const name = names[static_cast<int>(kind)];
  if (kind > Kind::receive) return "a " + name;
  OfferKey const& key = offers.front().key;
  return "a " + name + (kind == Kind::receive ? " from rank " : " to rank ") + std::to_string(key.peer) +
         " with tag " + std::to_string(key.tag);
}

void RequestState::open(PointToPoint& point, std::vector<Offer> const& others) {
  std::lock_guard const lock(guard_);
  for (std::size_t k = 0; k < offers.size(); ++k)
    if (offers[k].carries) parts_.push_back(open_part(point, offers[k], others[k]));
  if (kind <= Kind::receive)
    last.bytes = static_cast<std::size_t>(std::min(offers.front().bytes, others.front().bytes));
  pending_.assign(parts_.size(), false);
}

void RequestState::start() {
  std::lock_guard const lock(guard_);
  if (is_lost_) return;
  is_running_ = true;
  pending_.assign(parts_.size(), true);
  try {
    for (auto const& part : parts_) part->start();
  } catch (Error const&) {  // the library that carries it says that somebody is gone
    is_lost_ = true;
  }
}

Progress RequestState::poll() {
  std::lock_guard const lock(guard_);
  if (is_lost_) return Progress::lost;
  try {
    bool all = true;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      if (!pending_[k]) continue;
      Progress const progress = parts_[k]->poll();
      if (progress == Progress::lost || progress == Progress::broken) return progress;
      pending_[k] = progress == Progress::pending;
      all = all && !pending_[k];
    }
    if (!all) return Progress::pending;
  } catch (Error const&) {
    return Progress::lost;
  }
  if (done) done();
  is_running_ = false;
  ++last.starts;
  return Progress::done;
}

void RequestState::leave_all() noexcept {
  for (auto const& part : parts_) part->leave();
  parts_.clear();
  pending_.clear();
}

void RequestState::lose() noexcept {
  std::lock_guard const lock(guard_);
  if (is_lost_) return;
  is_lost_ = last.lost = true;
  leave_all();
}

void RequestState::close() noexcept {
  std::lock_guard const lock(guard_);
  if (is_running_) last.lost = true;
  is_lost_ = true;
  phase.store(Phase::closed);
  leave_all();
}

RequestStatus RequestState::status() {
  std::lock_guard const lock(guard_);
  return last;
}

}  // namespace hostless::queue
