// Sides that are given up, and who is told of it.
#include <algorithm>

#include "queue/communicator_state.hpp"

namespace hostless::queue {

void tell_gone(Offer const& other) {
  if (other.is_on_gpu()) {
    if (!other.shared->on_gpu->lose_other()) say_still_used();
    return;
  }
  if (other.shared) std::atomic_ref(other.shared->other_gone).store(1, std::memory_order_release);
}

// A side that is given up says so behind its offer, whether the other one was heard or not: notes keep their order,
// so each rank that hears the offer hears this too, in whatever it does next, also where the rank that has given up
// calls nothing any more. It may cross the other side's offer; then that one
//   has not met it yet, and will not be matched,
//   is of a request that waits for more ranks, whose match ends,
//   or is matched already: its first start is refused, or its wait lost. Over a library both listen, and hear it
//   here: it may arrive well behind the offer. Where memory is shared waits do not listen: each rank tells first and
//   hears then, so that one of the two has heard the other (offer, and answer_others, whose join says it by the
//   words of the message).
// An answer to the other side's offer would take calls of the rank that has given up; to be matched by an answer
// alone would take calls of a rank that has begun its match and computes.
void CommunicatorState::withdraw(Offer const& told) {
  OfferKey const mine = other_side(told.key);
  if (auto const heard = heard_.find(mine); heard != heard_.end())
    for (Offer& one : heard->second)  // which keeps its place among those of its key
      if (one.serial == told.serial) one.withdrawn = true;
  for (auto const& known : requests_) {
    auto const request = known.lock();
    if (request == nullptr) continue;
    bool const has_met = std::any_of(request->offers.begin(), request->offers.end(), [&](Offer const& one) {
      return one.other_serial == told.serial && !(one.key < mine || mine < one.key);
    });
    if (!has_met) continue;
    if (request->phase.load() == RequestState::Phase::matched) {
      request->lose_other();
      request->phase.store(RequestState::Phase::lost);
    }
    give_up_with(*request, mine.peer);
  }
}

void CommunicatorState::give_up_with(RequestState& request, int peer) noexcept {
  if (request.phase.load() == RequestState::Phase::matching) request.given_up_by = peer;
  abandon_locked(request);
}

void CommunicatorState::tell_withdrawn(OfferKey const& key, std::uint64_t serial) noexcept {
  if (serial == 0 || point_ == nullptr) return;
  try {
    point_->tell(key.peer, withdrawn_text(key, serial), nullptr);
  } catch (...) {  // it has left before
  }
}

void CommunicatorState::abandon(RequestState& request) noexcept {
  std::lock_guard const lock(mutex_);
  abandon_locked(request);
}

void CommunicatorState::answer_others(RequestState const& request) noexcept {
  std::lock_guard const lock(mutex_);
  if (point_ == nullptr) return;
  try {
    hear();
  } catch (...) {  // the library carries no more
  }
  for (Offer const& offer : request.offers) {
    try {
      join(offer.key);
    } catch (...) {  // it has left, or what is opened for another request has failed: that one says so
    }
  }
}

void CommunicatorState::abandon_locked(RequestState& request) noexcept {
  if (request.phase.load() != RequestState::Phase::matching) return;
  for (Offer const& offer : request.offers) {
    tell_withdrawn(offer.key, offer.serial);
    if (!offer.shared) continue;
    std::lock_guard const moving(offer.shared->moving);
    offer.shared->closed = true;
  }
  for (auto const& other : others_[&request])
    if (other) tell_gone(*other);
  others_.erase(&request);
  request.lose();
  request.phase.store(RequestState::Phase::lost);  // it keeps its place among those of its key
}

}  // namespace hostless::queue
