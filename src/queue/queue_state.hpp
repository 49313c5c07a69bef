#pragma once
// A queue's work, and who does it.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/thread_team.hpp"
#include "hostless/base/wait.hpp"
#include "queue/group_work.hpp"
#include "queue/halo/host_pass.hpp"
#include "queue/looks.hpp"
#include "queue/request_state.hpp"
#include "transport/setup_wait.hpp"

namespace hostless::queue {

class QueueState : public std::enable_shared_from_this<QueueState> {
 public:
  using Requests = std::vector<std::shared_ptr<RequestState>>;

  /// stream: of a GPU, for the types peer and nccl.
  QueueState(QueueType wanted, void* stream) : type(wanted) {
    if (type == QueueType::peer) stream_work_ = std::make_unique<StreamWork>(type, stream, limit_s_.load());
    if (type == QueueType::nccl) stream_work_ = std::make_unique<GroupWork>(type, stream, limit_s_.load());
  }
  ~QueueState();

  QueueType const type;
  Requests started;  ///< and not waited for; of the caller's thread

  void enqueue_start(Requests requests);
  void enqueue_wait(Requests requests);
  /// Either may be none.
  void enqueue_start_and_wait(Requests const& starts, Requests const& waits);
  void enqueue_function(std::function<void()> work);
  /// By a kernel of the stream, or a function. keeps: what owns its arrays, or nothing
  void enqueue_pass(std::shared_ptr<HaloJob const> job, std::shared_ptr<void const> keeps);
  /// What `calls` of this queue enqueues is in as a whole, or nothing of it; a stream has each as it is called.
  template <class Calls>
  void enqueue_together(Calls const& calls) {
    if (stream_work_) return calls();
    struct Gathering {
      QueueState& queue;
      std::vector<Item> items{};
      explicit Gathering(QueueState& of) : queue(of) { queue.gathered_ = &items; }
      ~Gathering() { queue.gathered_ = nullptr; }
    } gathering(*this);
    calls();
    gathered_ = nullptr;
    if (!gathering.items.empty()) add(std::span(gathering.items));
  }
  bool is_done() const {
    return stream_work_ ? stream_work_->is_done() : done_.load(std::memory_order_acquire) == enqueued_;
  }
  /// That of the stream; -1: none.
  int gpu() const { return stream_work_ ? stream_work_->device() : -1; }
  /// Blocks until all is done. look: as Queue::wait has it
  void drain(std::function<void()> const& look);
  /// What a function threw, or the loss.
  void throw_what_failed();
  void set_limit(double seconds) {
    limit_s_.store(seconds);
    if (stream_work_) stream_work_->set_limit(seconds);
  }

  /// Moves on what only calls of this library move on: all queues of the process that no thread does.
  static void advance_all();
  /// Whether this thread is in a function of a queue, which waits for its return.
  static bool is_in_function();
  /// Calls it as one.
  static void in_function(std::function<void()> const& work);

 private:
  enum class What : std::uint8_t { start, wait, function };
  struct Item {
    What what;
    Requests requests;
    std::function<void()> work;
    std::vector<char> pending{};  ///< by request, of a wait
    bool is_begun = false;
    LossWatch watch{};  ///< of a wait, since it is begun
  };

  enum class By : std::uint8_t { thread, call };

  void add(std::span<Item> more);
  void add(Item item) { add({&item, 1}); }
  /// Does what can be done without waiting. True: something was.
  bool advance(By by);
  bool execute(Item& item);
  void execute_start(Item& item);
  bool execute_wait(Item& item);
  Progress poll(Item& item);
  void reached(Item const& item);
  bool must_end(Item& item);
  bool peer_is_gone(Item const& item);
  void lose(Item& item);
  void call(Item& item);
  void start_thread();
  void work_by_thread();
  Item* front();

  std::mutex items_mutex_;         // items_ and the end of the thread
  std::condition_variable added_;  // bounded: waited for by wait_for of a second
  std::deque<Item> items_;
  bool ends_ = false;
  Thread thread_;
  std::atomic<bool> by_calls_{false};  ///< not by the thread

  std::mutex run_mutex_;                   // whoever does the work
  KnownRequests known_;                    ///< all that were ever started here
  std::uint64_t enqueued_ = 0;             ///< of the caller's thread
  std::vector<Item>* gathered_ = nullptr;  ///< of it too: what is enqueued together
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> is_lost_{false};
  std::exception_ptr thrown_;
  std::string broken_;  ///< which promise was, by whose wait
  std::atomic<double> limit_s_{setup_limit_s(WaitLimits::from_environment())};
  std::unique_ptr<StreamWork> stream_work_;  ///< which does all of the work; null: the host does
};

}  // namespace hostless::queue
