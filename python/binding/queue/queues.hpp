#pragma once
// Communicators, requests and queues as Python holds them.

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../away.hpp"
#include "../ranks.hpp"
#include "halos.hpp"
#include "hostless/base/error.hpp"
#include "hostless/queue/queue.hpp"
#include "kept.hpp"

namespace hostless::python {

/// Memory of an array.
struct BufferWords {
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  std::span<std::byte> span() const { return {reinterpret_cast<std::byte*>(address), bytes}; }
};

/// Throws Error  usage
[[noreturn]] inline void refuse(char const* text) { throw Error(ErrorCode::usage, text); }
/// Errors  usage  no datatype has that name
Datatype datatype_from(std::string const& text);
/// Errors  QueueError in_use  this thread is inside a function of a queue, which waits for its return
void refuse_in_function(char const* what);
/// What a wait of this thread looks at ten times a second, without the GIL: signals, and whether its ranks or the
/// interpreter end.
std::function<void()> look_of_caller();

/// A request with its buffers, which live as long as it, and as long as a queue has it.
class HeldRequest {
 public:
  /// may_be_used_late: after a loss by the library that moves them, so they are kept for ever then
  HeldRequest(Request const& made, nanobind::object kept, bool may_be_used_late);
  /// A match.
  explicit HeldRequest(Request match);
  ~HeldRequest() { let_go(); }
  HeldRequest(HeldRequest const&) = delete;
  HeldRequest& operator=(HeldRequest const&) = delete;

  void free();
  bool is_matched();
  bool test();
  void wait();
  void cancel() { request_.cancel(); }
  RequestStatus status() const { return request_.status(); }
  bool exists() const { return request_.exists(); }
  /// Errors  usage  of another process
  Request& checked();
  void let_go() noexcept;
  /// Nothing where a queue has the request too.
  nanobind::handle kept() const { return request_.state().use_count() == 1 ? kept_ : nanobind::handle(); }

 private:
  Request request_;
  nanobind::handle kept_;  ///< the request's
  long const process_;
};

/// A Communicator over ranks that Python holds.
class HeldCommunicator final : public Ranks::Bound {
 public:
  /// by: "ofi", "nccl", or another word: what the ranks have
  HeldCommunicator(std::shared_ptr<Ranks> ranks, int gpu, std::string const& by, double limit_s);
  ~HeldCommunicator() override;
  HeldCommunicator(HeldCommunicator const&) = delete;
  HeldCommunicator& operator=(HeldCommunicator const&) = delete;

  /// How a rank leaves; not collective.
  void close();
  void end() noexcept override;
  bool closed() const { return communicator_ == nullptr; }

  /// kept: what must live as long as the request
  std::unique_ptr<HeldRequest> send(BufferWords const& buffer, int peer, int tag, bool is_ready,
                                    nanobind::object kept);
  std::unique_ptr<HeldRequest> receive(BufferWords const& buffer, int peer, int tag, nanobind::object kept);
  std::unique_ptr<HeldRequest> barrier(nanobind::object kept);
  std::unique_ptr<HeldRequest> all_reduce(BufferWords const& from, BufferWords const& to,
                                          std::string const& element, std::string const& operation,
                                          nanobind::object kept);
  std::unique_ptr<HeldRequest> broadcast(BufferWords const& buffer, int root, nanobind::object kept);
  /// Collective.
  std::unique_ptr<HeldHalo> halo(HaloWords const& words, nanobind::object kept);

 private:
  template <class Make>
  auto make(char const* what, Make const& of);
  template <class Make>
  std::unique_ptr<HeldRequest> make_request(nanobind::object kept, Make const& of);

  std::shared_ptr<Ranks> ranks_;
  std::unique_ptr<Transport> fabric_;
  std::unique_ptr<Communicator> communicator_;
  bool may_be_used_late_ = false;
};

std::unique_ptr<HeldRequest> begin_match(std::vector<HeldRequest*> const& requests);

class HeldQueue {
 public:
  /// kept: the stream's
  HeldQueue(std::string const& type, std::uintptr_t stream, nanobind::object kept);
  ~HeldQueue();
  HeldQueue(HeldQueue const&) = delete;
  HeldQueue& operator=(HeldQueue const&) = delete;

  void enqueue_start(std::vector<HeldRequest*> const& requests);
  void enqueue_wait(std::vector<HeldRequest*> const& requests);
  void enqueue_start_and_wait(std::vector<HeldRequest*> const& starts,
                              std::vector<HeldRequest*> const& waits);
  void enqueue_wait_all();
  void enqueue_function(nanobind::object function);
  /// arrays: where the others begin that stand in for the halo's, and `others` what keeps them; none, and None: its own
  void enqueue_gather(HeldHalo& halo, std::vector<std::uintptr_t> const& arrays, bool ends_run,
                      nanobind::object others);
  void enqueue_scatter(HeldHalo& halo, std::vector<std::uintptr_t> const& arrays, bool ends_run,
                       nanobind::object others);
  void wait();
  bool test();
  bool is_idle();
  void set_limit(double seconds);
  /// Waits for what is enqueued, without an error and without a look at signals; starts without a wait are lost.
  void close();
  bool closed() const { return queue_ == nullptr; }

 private:
  template <class Call>
  auto use(Call const& call);
  template <class Enqueue>
  void enqueue_step(HeldHalo& halo, std::vector<std::uintptr_t> const& arrays, bool ends_run,
                    nanobind::object others, Enqueue const& enqueue);

  std::unique_ptr<Queue> queue_;
  PythonReference stream_;
  std::atomic<bool> busy_{false};
  long const process_;
};

}  // namespace hostless::python
