#include "queue/request_state.hpp"

#include <algorithm>
#include <cstdio>
#include <new>
#include <utility>

#include "queue/communicator_state.hpp"
#include "queue/groups.hpp"

namespace hostless::queue {
namespace {

/// Of the host, and of a GPU or a halo.
using Memory = std::pair<std::vector<std::byte>, std::shared_ptr<std::byte>>;

// A library may still use it, as long as there is the process (docs/waits.md).
void leave_alone(Memory memory) noexcept {
  static auto* const all = new std::vector<Memory>;
  static auto* const mutex = new std::mutex;
  std::lock_guard const lock(*mutex);
  try {
    all->push_back(std::move(memory));
  } catch (std::bad_alloc const&) {  // nothing else can be done
  }
}

}  // namespace

RequestState::RequestState() = default;
RequestState::~RequestState() {
  leave_all();
  bool const has_memory = gpu_memory != nullptr || !memory.empty();
  if (has_memory && last.lost && !communicator->shares_memory())
    leave_alone({std::move(memory), std::move(gpu_memory)});
}

std::string RequestState::words() const {
  static constexpr char const* names[] = {"send",       "ready send", "receive", "barrier",
                                          "all-reduce", "broadcast",  "match"};
  std::string const name = names[static_cast<int>(kind)];
  if (kind > Kind::receive) return "a " + name;
  OfferKey const& key = offers.front().key;
  return "a " + name + (kind == Kind::receive ? " from rank " : " to rank ") + std::to_string(key.peer) +
         " with tag " + std::to_string(key.tag);
}

std::size_t RequestState::messages() const {
  return static_cast<std::size_t>(
      std::count_if(offers.begin(), offers.end(), [](Offer const& one) { return one.carries; }));
}

void RequestState::open(PointToPoint& point, std::vector<Offer> const& others) {
  std::lock_guard const lock(guard_);
  if (communicator->groups() != nullptr) open_in_groups(others);
  for (std::size_t k = 0; k < offers.size() && !moves_in_groups_; ++k) {
    if (!offers[k].carries) continue;
    if (communicator->gpu() < 0) {
      parts_.push_back(open_part(point, offers[k], others[k]));
    } else {
      ends_.push_back(open_end(gpu::message_library(), offers[k], others[k]));
      sides_.insert(sides_.end(), {offers[k].shared->on_gpu, others[k].shared->on_gpu});
    }
  }
  if (kind <= Kind::receive)
    last.bytes = static_cast<std::size_t>(std::min(offers.front().bytes, others.front().bytes));
  pending_.assign(parts_.size(), false);
}

void RequestState::open_in_groups(std::vector<Offer> const& others) {
  moves_in_groups_ = true;
  for (std::size_t k = 0; k < offers.size(); ++k) {
    if (!offers[k].carries) continue;
    bool const sends = offers[k].side() == Side::sender;
    Offer const& send = sends ? offers[k] : others[k];
    // A library has one type for what it reads and what it stores to.
    auto* const buffer = sends ? const_cast<std::byte*>(send.from) : offers[k].to;
    ordered_.push_back(
        {{offers[k].side(), offers[k].key.peer, buffer, static_cast<std::size_t>(send.bytes)}, send.order});
  }
}

void RequestState::add_messages(std::vector<OrderedMessage>& all) {
  std::lock_guard const lock(guard_);
  all.insert(all.end(), ordered_.begin(), ordered_.end());
}

bool RequestState::is_lost() {
  std::lock_guard const lock(guard_);
  return is_lost_ || other_is_lost_;
}

void RequestState::start() {
  std::lock_guard const lock(guard_);
  if (is_lost_ || other_is_lost_) return;
  is_running_ = true;
  pending_.assign(parts_.size(), true);
  try {
    for (auto const& part : parts_) part->start();
  } catch (Error const&) {  // the library that carries it says that somebody is gone
    is_lost_ = last.lost = true;
    leave_all();
  }
}

Progress RequestState::poll() {
  std::lock_guard const lock(guard_);
  if (is_lost_ || other_is_lost_) return Progress::lost;
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

void RequestState::count_starts() noexcept {
  try {
    if (moves_in_groups_ && !offers.empty())
      last.starts = communicator->groups()->counts(offers.front().key.peer).done;
    if (!ends_.empty()) last.starts = ends_.front()->counts().waits;
  } catch (...) {  // a GPU that has failed has said so before
  }
}

// Where nothing can be thrown.
void say_still_used() noexcept {
  std::fputs(
      "hostless: kernels did not end in time that use the buffer of a request which has gone (they may still "
      "load or store there). Leave the buffer as it is until the work of its stream is done.\n",
      stderr);
}

void RequestState::leave_all() noexcept {
  count_starts();
  for (auto const& part : parts_) part->leave();
  bool is_over = true;
  for (auto const& end : ends_) is_over = end->leave() && is_over;
  if (on_gpu_done && on_gpu_done->side) is_over = on_gpu_done->side->leave() && is_over;
  if (!is_over) say_still_used();
  for (Offer& offer : offers) offer.library.reset();  // one that was not matched
  if (communicator != nullptr && communicator->groups() != nullptr) communicator->groups()->remove(*this);
  moves_in_groups_ = false;
  ordered_.clear();
  parts_.clear();
  ends_.clear();
  sides_.clear();
  pending_.clear();
}

void RequestState::count_wait() {
  std::lock_guard const lock(guard_);
  ++enqueued_waits;
  bool const is_counted = !ends_.empty() || (moves_in_groups_ && !offers.empty());
  if (!is_counted && !is_lost_) ++last.starts;  // of one rank alone: no word counts
}

bool RequestState::is_in_group() const {
  return std::any_of(offers.begin(), offers.end(), [this](Offer const& offer) {
    gpu::GroupCounts const now = communicator->groups()->counts(offer.key.peer);
    return now.done < enqueued_waits || now.begun != now.done;
  });
}

bool RequestState::is_unreached() {
  if (communicator->gpu() < 0) return unreached.load() != 0;
  std::lock_guard const lock(guard_);
  if (moves_in_groups_) return is_in_group();
  for (auto const& end : ends_) {
    gpu::ReachedCounts const now = end->counts();
    if (now.waits < enqueued_waits || now.waits != now.starts) return true;
  }
  return false;
}

void RequestState::add_ends(std::vector<gpu::MessageEnd*>& all) {
  std::lock_guard const lock(guard_);
  for (auto const& end : ends_) all.push_back(end.get());
}

void RequestState::lose() noexcept {
  std::lock_guard const lock(guard_);
  if (is_lost_) return;
  is_lost_ = last.lost = true;
  leave_all();
}

void RequestState::lose_other() noexcept {
  std::lock_guard const lock(guard_);
  other_is_lost_ = true;
}

void RequestState::close() noexcept {
  std::lock_guard const lock(guard_);
  bool const is_begun = is_running_ || ((!ends_.empty() || moves_in_groups_) && is_started);
  if (is_begun || (moves_in_groups_ && is_in_group())) last.lost = true;
  is_lost_ = true;
  phase.store(Phase::closed);
  leave_all();
}

RequestStatus RequestState::status() {
  std::lock_guard const lock(guard_);
  count_starts();
  return last;
}

void lose_all(KnownRequests& known) noexcept {
  // Others hear of it first: what is under way to them has nobody who waits for its end.
  for (auto const& one : known)
    if (auto const request = one.lock()) request->communicator->give_up();
  for (auto const& one : known)
    if (auto const request = one.lock()) request->lose();
  known.clear();
}

}  // namespace hostless::queue
