#include "queue/stream_work.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "hostless/base/wait.hpp"
#include "queue/communicator_state.hpp"
#include "queue/queue_state.hpp"

namespace hostless::queue {

StreamWork::StreamWork(QueueType type, void* stream, double limit_s) : limit_s_(limit_s) {
  if (stream == nullptr)
    throw QueueError(Refusal::unsupported, std::string("a queue of the type ") + name(type) +
                                               " without a stream (the default stream of a GPU waits for the "
                                               "others, which wait for it). Make one for it, that does not.");
  stream_ = gpu::message_library().stream(stream);
  stream_->set_limit(limit_s);
}

StreamWork::Ends const& StreamWork::ends_of(Requests const& requests, Ends& in) {
  in.clear();
  for (auto const& request : requests) request->add_ends(in);
  return in;
}

bool StreamWork::may_enqueue(Requests const& requests) {
  if (!look_for_loss()) return true;
  for (auto const& request : requests) request->lose();
  return false;
}

void StreamWork::know(Requests const& requests) {
  has_recorded_ = has_recorded_ || stream_->is_recording();
  for (auto const& request : requests) {
    if (known_.insert(request).second) keep(*request);
  }
}

void StreamWork::keep(RequestState const& request) {
  kept_.insert(request.sides().begin(), request.sides().end());
  if (request.gpu_memory) kept_memory_.insert(request.gpu_memory);
  if (request.on_gpu_done) kept_.insert(request.on_gpu_done->side);
}

void StreamWork::enqueue_start(Requests const& requests) {
  if (!may_enqueue(requests)) return;
  know(requests);
  start(requests);
}

void StreamWork::enqueue_wait(Requests const& requests) {
  if (!may_enqueue(requests)) return;
  bool const is_recording = stream_->is_recording();
  wait(requests);
  end_wait(requests, is_recording);
}

void StreamWork::enqueue_start_and_wait(Requests const& starts, Requests const& waits) {
  bool const may_start = may_enqueue(starts);
  if (!may_start) {
    for (auto const& request : waits) request->lose();
    return;
  }
  know(starts);
  bool const is_recording = stream_->is_recording();
  start_and_wait(starts, waits);
  end_wait(waits, is_recording);
}

void StreamWork::end_wait(Requests const& requests, bool is_recording) {
  if (host_looks() && look_for_loss()) return;
  for (auto const& request : requests) {
    if (request->on_gpu_done && request->on_gpu_done->what.count != 0) stream_->reduce(*request->on_gpu_done);
    if (!is_recording) request->count_wait();
  }
}

void StreamWork::call(void* user) {
  std::unique_ptr<Call> own(static_cast<Call*>(user));
  StreamWork& queue = *own->queue;
  try {
    QueueState::in_function(own->work);
  } catch (...) {
    std::lock_guard const lock(queue.thrown_mutex_);
    if (!queue.thrown_) queue.thrown_ = std::current_exception();
  }
  if (own->is_recorded) static_cast<void>(own.release());  // the queue has it
}

void StreamWork::enqueue_function(std::function<void()> work) {
  bool const is_recording = stream_->is_recording();
  auto made = std::make_unique<Call>(Call{this, std::move(work), is_recording});
  stream_->call(&call, made.get());
  if (is_recording) recorded_.push_back(std::move(made));
  static_cast<void>(made.release());
}

void StreamWork::enqueue_pass(HaloPass const& what, std::shared_ptr<void const> keeps) {
  if (look_for_loss()) return;
  auto& kept = stream_->is_recording() ? kept_by_graphs_ : kept_owners_;
  if (keeps) kept.insert(std::move(keeps));
  stream_->pass_halo(what);
}

bool StreamWork::is_done() {
  if (stream_->is_recording()) return false;
  if (host_looks()) static_cast<void>(look_for_loss());
  return stream_->is_done();
}

void StreamWork::drain(Looks& looks) {
  if (stream_->is_recording())
    throw Error(
        ErrorCode::usage,
        "a wait for a queue whose stream is being recorded (nothing of it is done before the graph is "
        "launched). End the recording first.");
  // Each wait among the work has its limit; the rest is the caller's.
  // Looked at for as long as a processor takes to fall asleep and wake up; then it sleeps.
  constexpr auto soon = std::chrono::microseconds(50);
  auto const begin = Clock::now();
  for (Backoff backoff; !stream_->is_done();) {
    if (host_looks()) static_cast<void>(look_for_loss());
    if (looks || Clock::now() - begin < soon) {
      backoff.pause();
      looks();
    } else if (host_looks()) {
      std::this_thread::sleep_for(soon);
    } else {
      stream_->sleep();
    }
  }
  static_cast<void>(look_for_loss());
  std::erase_if(known_, [](auto const& one) { return one.expired(); });
  kept_owners_.clear();
  if (has_recorded_) return;
  let_go();
  kept_.clear();
  kept_memory_.clear();
  for (auto const& one : known_) {
    if (auto const request = one.lock()) keep(*request);
  }
}

bool StreamWork::look_for_loss() {
  if (ending_ != Progress::pending) return true;
  ending_ = stream_->ending();
  if (ending_ == Progress::pending && looks_lost()) ending_ = Progress::lost;
  if (ending_ == Progress::pending) return false;
  lose_all(known_);
  return true;
}

void StreamWork::throw_what_failed() {
  {
    std::lock_guard const lock(thrown_mutex_);
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }
  if (!look_for_loss()) return;
  if (ending_ == Progress::broken)
    throw Error(
        ErrorCode::usage,
        "a wait on this queue's stream found the message of another start than its own (a ready send was "
        "started before its receiver's start was reached, which its caller had promised; all requests of the "
        "queue are lost). Start it later, or use a standard send.");
  throw Error(
      ErrorCode::peer_lost,
      "a wait on this queue's stream ended without its message: a rank has left or was silent for the "
      "queue's limit (its requests are lost). Free them and the queue, and look for the first message of "
      "another rank.");
}

}  // namespace hostless::queue
