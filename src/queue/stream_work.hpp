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

#include "queue/request_state.hpp"

namespace hostless::queue {

class StreamWork {
 public:
  using Requests = std::vector<std::shared_ptr<RequestState>>;

  /// Errors  environment  no GPU can be used
  ///         QueueError unsupported  no stream
  StreamWork(void* stream, double limit_s);
  int device() const { return stream_->device(); }
  void enqueue_start(Requests const& requests);
  void enqueue_wait(Requests const& requests);
  void enqueue_function(std::function<void()> work);
  /// Never blocks. False while the stream records.
  bool is_done() const;
  /// Blocks until all is done that is on the stream.
  /// Errors  usage        it records
  ///         environment  the GPU has failed
  void drain();
  /// What a function threw, or the loss.
  void throw_what_failed();
  void set_limit(double seconds) { stream_->set_limit(seconds); }

 private:
  struct Call {
    StreamWork* queue;
    std::function<void()> work;
    bool is_recorded;
  };
  static void call(void* user);
  std::vector<gpu::MessageEnd*> const& ends_of(Requests const& requests);
  void know(Requests const& requests);
  void keep(RequestState const& request);
  /// Whether a wait has ended without its message; gives up what is known of this queue.
  bool look_for_loss();

  std::unique_ptr<gpu::MessageStream> stream_;
  std::vector<gpu::MessageEnd*> ends_;  ///< of one call: their memory is used again
  KnownRequests known_;                 ///< all that were ever started here
  /// What kernels of this queue use, and may not be used again before they are done.
  std::set<std::shared_ptr<gpu::LentSide>> kept_;
  std::set<std::shared_ptr<std::byte>> kept_memory_;
  std::deque<std::unique_ptr<Call>> recorded_;  ///< graphs call them again
  bool has_recorded_ = false;
  Progress ending_ = Progress::pending;  ///< lost, broken: a wait ended so
  std::mutex thrown_mutex_;
  std::exception_ptr thrown_;
};

}  // namespace hostless::queue
