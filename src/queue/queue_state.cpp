#include "queue/queue_state.hpp"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "hostless/base/wait.hpp"
#include "queue/communicator_state.hpp"

namespace hostless::queue {
namespace {

// Queues that no thread works for.
struct ByCalls {
  std::mutex mutex;
  std::vector<std::weak_ptr<QueueState>> queues;
};
ByCalls& by_calls() {
  static ByCalls* const here = new ByCalls;  // outlives whatever ends with the process
  return *here;
}

// A thread that yields to others that compute waits for a time slice, one that wakes from a nap does not: so
// it naps soon. The other side of a message is rarely so late that a nap is much of it.
class Turns {
 public:
  void pause() {
    ++polls_;
    if (polls_ < spins) {
      backoff_.pause();
    } else if (polls_ < yields) {
      Backoff::give_core_away();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

 private:
  static constexpr unsigned spins = 150, yields = 300;  // the first less than Backoff spins
  Backoff backoff_;
  unsigned polls_ = 0;
};

thread_local bool is_calling = false;

}  // namespace

QueueState::~QueueState() {
  {
    std::lock_guard const lock(items_mutex_);
    ends_ = true;
  }
  added_.notify_all();
  if (thread_.joinable())
    thread_.join();  // bounded: it looks at ends_ after each item, whose wait has a limit
}

// All of them or none, also where memory runs out. What is in does not throw any more.
void QueueState::add(std::span<Item> more) {
  if (gathered_ != nullptr) {
    gathered_->insert(gathered_->end(), std::make_move_iterator(more.begin()),
                      std::make_move_iterator(more.end()));
    return;
  }
  bool const needs_calls = std::any_of(more.begin(), more.end(), [](Item const& item) {
    return std::any_of(item.requests.begin(), item.requests.end(),
                       [](auto const& request) { return !request->communicator->may_progress_by_thread(); });
  });
  if (needs_calls && !by_calls_.load()) {
    std::lock_guard const running(run_mutex_);  // the thread does what it has begun, and no more
    ByCalls& all = by_calls();
    std::lock_guard const lock(all.mutex);
    std::erase_if(all.queues, [](auto const& one) { return one.expired(); });
    all.queues.push_back(weak_from_this());
    by_calls_.store(true);  // calls find it
  }
  {
    std::lock_guard const lock(items_mutex_);
    if (!by_calls_.load() && !thread_.joinable()) start_thread();  // before anything counts as enqueued
    std::size_t const before = items_.size();
    try {
      for (Item& item : more) items_.push_back(std::move(item));
    } catch (...) {
      while (items_.size() > before) items_.pop_back();
      throw;
    }
    for (std::size_t k = before; k < items_.size(); ++k)
      for (auto const& request : items_[k].requests) request->unreached.fetch_add(1);
    enqueued_ += more.size();
  }
  if (by_calls_.load()) {
    advance_all();
  } else {
    added_.notify_one();
  }
}

void QueueState::start_thread() {
  try {
    thread_ = Thread([this] { work_by_thread(); });
  } catch (std::system_error const& e) {
    throw Error(ErrorCode::environment, std::string("the thread of a queue could not be started: ") +
                                            e.what() +
                                            " (nobody would do its work). Let this user have more threads.");
  }
}

void QueueState::enqueue_start(Requests requests) {
  if (stream_work_) return stream_work_->enqueue_start(requests);
  add(Item{What::start, std::move(requests), {}});
}
void QueueState::enqueue_wait(Requests requests) {
  if (stream_work_) return stream_work_->enqueue_wait(requests);
  add(Item{What::wait, std::move(requests), {}});
}
void QueueState::enqueue_start_and_wait(Requests const& starts, Requests const& waits) {
  if (stream_work_ && !starts.empty() && !waits.empty())
    return stream_work_->enqueue_start_and_wait(starts, waits);
  if (stream_work_) {
    if (!starts.empty()) stream_work_->enqueue_start(starts);
    if (!waits.empty()) stream_work_->enqueue_wait(waits);
    return;
  }
  Item both[] = {{What::start, starts, {}}, {What::wait, waits, {}}};
  std::size_t const first = starts.empty() ? 1 : 0, last = waits.empty() ? 1 : 2;
  if (first < last) add({both + first, both + last});
}
void QueueState::enqueue_function(std::function<void()> work) {
  if (stream_work_) return stream_work_->enqueue_function(std::move(work));
  add(Item{What::function, {}, std::move(work)});
}
void QueueState::enqueue_pass(std::shared_ptr<HaloJob const> job, std::shared_ptr<void const> keeps) {
  if (stream_work_) return stream_work_->enqueue_pass(job->pass, std::move(keeps));
  add(Item{What::function, {}, [job = std::move(job), keeps = std::move(keeps)] {
             pass_halo_by_host(job->pass);
           }});
}

QueueState::Item* QueueState::front() {
  std::lock_guard const lock(items_mutex_);
  return items_.empty() ? nullptr : &items_.front();  // a deque keeps it in place
}

bool QueueState::advance(By by) {
  std::unique_lock const running(run_mutex_, std::try_to_lock);
  if (!running.owns_lock()) return false;
  bool moved = false;
  while (Item* const item = front()) {
    // Under the lock: what add() lets in after it has said so is not the thread's.
    if (by == By::thread && by_calls_.load()) return moved;
    if (!execute(*item)) return moved;
    moved = true;
    reached(*item);
    {
      std::lock_guard const lock(items_mutex_);
      items_.pop_front();
    }
    done_.fetch_add(1, std::memory_order_release);
  }
  return moved;
}

void QueueState::reached(Item const& item) {
  for (auto const& request : item.requests) {
    if (item.what == What::wait) request->communicator->started().remove(request->messages());
    request->unreached.fetch_sub(1);
  }
}

bool QueueState::is_in_function() { return is_calling; }

void QueueState::in_function(std::function<void()> const& work) {
  struct Called {
    Called() { is_calling = true; }
    ~Called() { is_calling = false; }
  } const called;
  work();
}

void QueueState::call(Item& item) {
  try {
    in_function(item.work);
  } catch (...) {
    if (!thrown_) thrown_ = std::current_exception();
  }
}

bool QueueState::execute(Item& item) {
  if (item.what == What::function) {
    call(item);
    return true;
  }
  try {
    if (item.what == What::wait) return execute_wait(item);
    execute_start(item);
  } catch (...) {  // no memory, say: whoever waits for the queue is told, not whoever happens to call
    if (!thrown_) thrown_ = std::current_exception();
    lose(item);
  }
  return true;
}

void QueueState::execute_start(Item& item) {
  for (auto const& request : item.requests) {
    if (is_lost_.load()) {
      request->lose();
    } else {
      known_.insert(request);
      request->start();
    }
  }
  constexpr std::size_t many = 4096;
  if (known_.size() > many) std::erase_if(known_, [](auto const& one) { return one.expired(); });
}

bool QueueState::execute_wait(Item& item) {
  if (!item.is_begun) {
    item.is_begun = true;
    item.watch.begin(limit_s_.load());
    item.pending.assign(item.requests.size(), 1);
  }
  Progress progress = poll(item);
  if (progress == Progress::pending) {
    if (!must_end(item)) return false;
    progress = poll(item);  // what came while peers were asked for
  }
  if (progress != Progress::done) lose(item);
  return true;
}

Progress QueueState::poll(Item& item) {
  bool all = true;
  for (std::size_t k = 0; k < item.requests.size(); ++k) {
    if (item.pending[k] == 0) continue;
    Progress const progress = item.requests[k]->poll();
    if (progress == Progress::broken && broken_.empty()) broken_ = item.requests[k]->words();
    if (progress == Progress::lost || progress == Progress::broken) return progress;
    item.pending[k] = progress == Progress::pending ? 1 : 0;
    all = all && item.pending[k] == 0;
  }
  return all ? Progress::done : Progress::pending;
}

bool QueueState::peer_is_gone(Item const& item) {
  for (std::size_t k = 0; k < item.requests.size(); ++k) {
    CommunicatorState& communicator = *item.requests[k]->communicator;
    if (item.pending[k] == 0 || communicator.shares_memory()) continue;  // whose words say so
    communicator.listen();
    if (communicator.has_left(*item.requests[k])) return true;
  }
  return false;
}

bool QueueState::must_end(Item& item) {
  if (!item.watch.look()) return false;
  try {
    return item.watch.must_end(peer_is_gone(item));
  } catch (Error const&) {  // the library says so
    return true;
  }
}

void QueueState::lose(Item& item) {
  is_lost_.store(true);
  lose_all(known_);
  for (auto const& request : item.requests) request->lose();
}

void QueueState::work_by_thread() {
  for (Turns turns;;) {
    bool const moved = !by_calls_.load() && advance(By::thread);
    if (moved) turns = {};
    std::unique_lock lock(items_mutex_);
    if (ends_ && (items_.empty() || by_calls_.load())) return;
    if (items_.empty() || by_calls_.load()) {
      constexpr std::chrono::seconds look(1);
      added_.wait_for(lock, look);  // bounded: look
      turns = {};
      continue;
    }
    lock.unlock();
    turns.pause();
  }
}

// Without memory of its own: its callers have enqueued. One that is left out because another goes is the next
// call's.
void QueueState::advance_all() {
  ByCalls& all = by_calls();
  for (std::size_t k = 0;; ++k) {
    std::shared_ptr<QueueState> queue;
    {
      std::lock_guard const lock(all.mutex);
      if (k >= all.queues.size()) return;
      queue = all.queues[k].lock();
    }
    if (queue) queue->advance(By::call);
  }
}

void QueueState::drain(std::function<void()> const& look) {
  Looks looks(look);
  if (stream_work_) return stream_work_->drain(looks);
  // Each wait among the work has its limit; functions are the caller's.
  for (Turns turns; !is_done(); turns.pause()) {
    advance_all();
    looks();
  }
}

void QueueState::throw_what_failed() {
  if (stream_work_) return stream_work_->throw_what_failed();
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  if (!broken_.empty())
    throw Error(ErrorCode::usage,
                broken_ +
                    " found the message of another start than its own (a ready send was started before "
                    "its receiver's start was reached, which its caller had promised; all requests of the "
                    "queue are lost). Start it later, or use a standard send.");
  if (is_lost_.load())
    throw Error(ErrorCode::peer_lost,
                "a wait on this queue ended without its message: a rank has left, died or was silent for the "
                "queue's limit (its requests are lost). Free them and the queue, and look for the first "
                "message of another rank.");
}

}  // namespace hostless::queue
