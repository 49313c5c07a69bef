// How a communicator ends: by a loss, or because it is closed.
#include "hostless/base/wait.hpp"
#include "queue/communicator_state.hpp"

namespace hostless::queue {

void CommunicatorState::give_up() noexcept {
  std::lock_guard const lock(mutex_);
  if (point_ == nullptr) return;
  point_->give_up();
  if (groups_ && groups_->give_up()) tell_leaving();
}

// Where telling costs a message, those alone who may wait.
void CommunicatorState::tell_leaving() noexcept {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_ || (!shares_memory_ && !told_[static_cast<std::size_t>(peer)])) continue;
    try {
      point_->tell(peer, leaving_text(), nullptr);
    } catch (...) {  // it has left before
    }
  }
}

void CommunicatorState::close() noexcept {
  std::vector<std::weak_ptr<RequestState>> requests;
  {
    std::lock_guard const lock(mutex_);
    if (point_ == nullptr) return;
    try {
      hear();
      join_heard();
    } catch (...) {  // the library carries no more
    }
    tell_leaving();
    requests.swap(requests_);
  }
  for (auto const& one : requests)
    if (auto const request = one.lock()) request->close();
  if (groups_) groups_->close();
  hear_others_leave();
  std::lock_guard const lock(mutex_);
  waiting_.clear();
  heard_.clear();
  unjoined_.clear();
  others_.clear();
  point_.reset();
  taken_.reset();
}

// Over a library notes that nobody takes are left to its end, which complains of them.
void CommunicatorState::hear_others_leave() noexcept {
  if (shares_memory_) return;
  std::lock_guard const lock(mutex_);
  constexpr double patience_s = 0.25;
  try {
    auto const all_left = [&] {
      hear();
      for (int peer = 0; peer < size_; ++peer)
        if (auto const p = static_cast<std::size_t>(peer); peer != rank_ && told_[p] && !left_[p])
          return false;
      return true;
    };
    wait_for(
        all_left, [&] { return point_->has_left(-1); }, Deadline::after(patience_s));
  } catch (...) {  // the library carries no more
  }
}

void CommunicatorState::forget(RequestState& request) noexcept {
  request.close();
  std::lock_guard const lock(mutex_);
  others_.erase(&request);
}

}  // namespace hostless::queue
