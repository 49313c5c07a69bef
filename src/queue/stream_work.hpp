#pragma once
// A queue whose work a GPU's stream does.

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "queue/looks.hpp"
#include "queue/request_state.hpp"

namespace hostless::queue {

/// By kernels, of the type peer.
class StreamWork {
 public:
  using Requests = std::vector<std::shared_ptr<RequestState>>;

  /// Errors  environment  no GPU can be used
  ///         QueueError unsupported  no stream
  StreamWork(QueueType type, void* stream, double limit_s);
  StreamWork(StreamWork const&) = delete;
  StreamWork& operator=(StreamWork const&) = delete;
  virtual ~StreamWork() = default;
  int device() const { return stream_->device(); }
  void enqueue_start(Requests const& requests);
  void enqueue_wait(Requests const& requests);
  void enqueue_start_and_wait(Requests const& starts, Requests const& waits);
  void enqueue_function(std::function<void()> work);
  /// After a loss it does nothing. keeps: what owns its arrays, or nothing
  void enqueue_pass(HaloPass const& what, std::shared_ptr<void const> keeps);
  /// Never blocks. False while the stream records.
  bool is_done();
  /// Blocks until all is done that is on the stream. With looks it does not sleep until then.
  /// Errors  usage        it records
  ///         environment  the GPU has failed
  void drain(Looks& looks);
  /// What a function threw, or the loss.
  void throw_what_failed();
  void set_limit(double seconds) {
    limit_s_ = seconds;
    stream_->set_limit(seconds);
  }

 protected:
  /// Onto the stream.
  virtual void start(Requests const& requests) { stream_->start(ends_of(requests, ends_)); }
  virtual void wait(Requests const& requests) { stream_->wait(ends_of(requests, ends_)); }
  virtual void start_and_wait(Requests const& starts, Requests const& waits) {
    stream_->start_and_wait(ends_of(starts, ends_), ends_of(waits, more_ends_));
  }
  /// Whether the host has to look how waits go on.
  virtual bool host_looks() const { return false; }
  /// Whether it has seen that one must end.
  virtual bool looks_lost() { return false; }
  /// What the stream uses beside sides, until it is done: no more.
  virtual void let_go() {}
  gpu::MessageStream& stream() { return *stream_; }
  double limit_s() const { return limit_s_; }

 private:
  struct Call {
    StreamWork* queue;
    std::function<void()> work;
    bool is_recorded;
  };
  static void call(void* user);
  using Ends = std::vector<gpu::MessageEnd*>;
  static Ends const& ends_of(Requests const& requests, Ends& in);
  /// False: a wait has ended without its message, and so are these lost.
  bool may_enqueue(Requests const& requests);
  void know(Requests const& requests);
  /// Behind their wait.
  void end_wait(Requests const& requests, bool is_recording);
  void keep(RequestState const& request);
  /// Whether a wait has ended without its message; gives up what is known of this queue.
  bool look_for_loss();

  std::unique_ptr<gpu::MessageStream> stream_;
  double limit_s_;
  Ends ends_, more_ends_;  ///< of one call: their memory is used again
  KnownRequests known_;    ///< all that were ever started here
  /// What kernels of this queue use, and may not be used again before they are done.
  std::set<std::shared_ptr<gpu::LentSide>> kept_;
  std::set<std::shared_ptr<std::byte>> kept_memory_;
  std::set<std::shared_ptr<void const>> kept_owners_, kept_by_graphs_;  ///< of arrays that passes use
  std::deque<std::unique_ptr<Call>> recorded_;                          ///< graphs call them again
  bool has_recorded_ = false;
  Progress ending_ = Progress::pending;  ///< lost, broken: a wait ended so
  std::mutex thrown_mutex_;
  std::exception_ptr thrown_;
};

}  // namespace hostless::queue
