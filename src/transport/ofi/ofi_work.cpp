// Deferred operations until they have ended: their memory, and who sets off what a full queue left over.
#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>

#include "transport/ofi/ofi_world.hpp"

namespace hostless::ofi {

DeferredWork::DeferredWork(Counter one, Counter other) {
  halves_[0].ended = std::move(one);
  halves_[1].ended = std::move(other);
}

void DeferredWork::begin() {
  constexpr std::size_t large = 64;
  std::size_t const other = 1 - current_;
  if (halves_[current_].operations.size() < large || !halves_[other].is_done()) return;
  halves_[other].operations.clear();
  current_ = other;
}

fid_cntr* DeferredWork::counts() { return halves_[current_].ended.get(); }

void DeferredWork::has_begun() { ++halves_[current_].begun; }

bool DeferredWork::has_failed() const {
  return std::any_of(halves_.begin(), halves_.end(),
                     [](Half const& half) { return fi_cntr_readerr(half.ended.get()) != 0; });
}

bool DeferredWork::Half::is_done() const {
  return fi_cntr_read(ended.get()) + fi_cntr_readerr(ended.get()) >= begun.load();
}

// Counters are turned by 0: the provider then sets off what a full queue left, and whoever counts in one has gone on
// when it may be closed.
bool is_done(Remains const& one) {
  for (Counter const& counter : one.counters) fi_cntr_add(counter.get(), 0);
  return one.work->is_done();
}

// Under `watching_`.
void World::start_sweeper() {
  if (sweeper_.joinable()) return;
  try {
    sweeper_ = std::thread([this] { sweep_until_end(); });
  } catch (std::system_error const& e) {
    throw Error(ErrorCode::environment,
                std::string("the thread of a libfabric transport could not be started: ") + e.what() +
                    " (nobody would do what its queue had no room for). Let this user "
                    "have more threads.");
  }
}

void World::start_watching() {
  std::lock_guard const lock(watching_);
  start_sweeper();
}

void World::watch(Remains const& side) {
  std::lock_guard const lock(watching_);
  start_sweeper();
  watched_.insert(&side);
}

void World::keep(Remains& side) {
  {
    std::lock_guard const lock(watching_);
    watched_.erase(&side);
  }
  {
    std::lock_guard const lock(mutex);
    clear_remains();
    remains_.push_back(std::move(side));
  }
  stir();
}

void World::stir() {
  if (is_stirred_.exchange(true)) return;
  std::lock_guard const lock(watching_);
  wakes_.notify_one();
}

// True: all operations have ended. What others still count in a word keeps its memory, but is nobody's to set off.
bool World::clear_remains() {
  bool all_done = true;
  std::erase_if(remains_, [&](Remains const& one) {
    if (!is_done(one)) return all_done = false;
    return one.awaited == nullptr ||
           std::atomic_ref(*const_cast<std::uint64_t*>(one.awaited)).load() >= one.arrivals;
  });
  return all_done;
}

// Under `watching_`. True: there is nothing that could be left over.
bool World::sweep() {
  bool all_done = true;
  if (!is_left_)
    for (Remains const* const one : watched_) all_done = is_done(*one) && all_done;
  std::lock_guard const lock(mutex);
  bool const all_sent = send_letters();
  return (is_left_ || (clear_remains() && all_done)) && all_sent;
}

void World::sweep_until_end() {
  constexpr std::chrono::milliseconds pause(5), rest(1000);
  std::unique_lock lock(watching_);
  while (!ends_) {
    wakes_.wait_for(lock, rest, [this] { return ends_ || is_stirred_.load(); });
    is_stirred_.store(false);
    do wakes_.wait_for(lock, pause, [this] { return ends_; });
    while (!ends_ && !sweep());
  }
}

void World::end_watch() {
  {
    std::lock_guard const lock(watching_);
    ends_ = true;
    wakes_.notify_one();
  }
  if (sweeper_.joinable()) sweeper_.join();  // bounded: it is woken, and polls only
}

}  // namespace hostless::ofi
