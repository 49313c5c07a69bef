#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/setup_watch.hpp"
#include "hostless/transport/ofi.hpp"
#include "queues.hpp"

namespace nb = nanobind;

namespace hostless::python {
namespace {

/// The buffers of a request, which go after it.
class Buffers {
 public:
  Buffers(std::shared_ptr<queue::RequestState> state, PythonReference kept, bool may_be_used_late)
      : state_(std::move(state)), kept_(std::move(kept)), may_be_used_late_(may_be_used_late) {}
  ~Buffers() {
    bool const is_kept = may_be_used_late_ && Request(state_).status().lost;
    state_.reset();
    if (is_kept) static_cast<void>(new PythonReference(std::move(kept_)));  // for ever (docs/waits.md)
  }
  Buffers(Buffers const&) = delete;
  Buffers& operator=(Buffers const&) = delete;

 private:
  std::shared_ptr<queue::RequestState> state_;
  PythonReference kept_;
  bool may_be_used_late_;
};

// A handle that stands for both.
Request with_buffers(Request const& made, PythonReference kept, bool may_be_used_late) {
  auto const all = std::make_shared<Buffers>(made.state(), std::move(kept), may_be_used_late);
  return Request(std::shared_ptr<queue::RequestState>(all, made.state().get()));
}

ReduceOperation operation_from(std::string const& text) {
  if (text == "sum") return ReduceOperation::sum;
  if (text == "product") return ReduceOperation::product;
  if (text == "minimum") return ReduceOperation::minimum;
  if (text == "maximum") return ReduceOperation::maximum;
  throw Error(ErrorCode::usage, "unknown operation '" + text + "'. Use sum, product, minimum or maximum.");
}

}  // namespace

Datatype datatype_from(std::string const& text) {
  if (text == "f32") return Datatype::f32;
  if (text == "f64") return Datatype::f64;
  if (text == "i32") return Datatype::i32;
  if (text == "i64") return Datatype::i64;
  if (text == "byte") return Datatype::byte;
  throw Error(ErrorCode::usage, "unknown element '" + text + "'. Use f32, f64, i32, i64 or byte.");
}

void refuse_in_function(char const* what) {
  if (is_in_function())
    throw QueueError(Refusal::in_use,
                     std::string(what) +
                         " inside a function of a queue (which goes on when the function has returned). "
                         "Return, and call it from where the queue is used.");
}

std::function<void()> look_of_caller() {
  return [watch = setup_watch(), began_at_end = ending.load()] {
    if ((!began_at_end && ending) || (watch != nullptr && watch->stopped()))
      throw Error(ErrorCode::aborted,
                  "the program has asked all ranks to end (no message is waited for any more). See what it "
                  "raised.");
    Back const back;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
}

// ---- requests

HeldRequest::HeldRequest(Request const& made, nb::object kept, bool may_be_used_late)
    : request_(with_buffers(made, keep(kept), may_be_used_late)), kept_(kept), process_(getpid()) {}
HeldRequest::HeldRequest(Request match) : request_(std::move(match)), process_(getpid()) {}

void HeldRequest::let_go() noexcept {
  if (process_ != getpid()) {  // of the parent, whose threads did not come along
    static_cast<void>(new Request(std::move(request_)));
    return;
  }
  {
    nb::gil_scoped_release const release;
    request_ = {};
  }
  drop_unkept();
}

Request& HeldRequest::checked() {
  if (process_ != getpid())
    refuse("a request of another process (a fork takes none along). Make it after the fork.");
  return request_;
}

void HeldRequest::free() {
  refuse_in_function("the end of a request");
  Request& mine = checked();
  {
    Away const away;
    mine.free();
  }
  drop_unkept();
}

bool HeldRequest::is_matched() {
  Request const& mine = checked();
  Away const away;
  return mine.is_matched();
}

bool HeldRequest::test() {
  Request& mine = checked();
  Away const away;
  return mine.test();
}

void HeldRequest::wait() {
  Request& mine = checked();
  auto const look = look_of_caller();
  Away const away;
  mine.wait(look);
}

// ---- communicators

HeldCommunicator::HeldCommunicator(std::shared_ptr<Ranks> ranks, int gpu, std::string const& by,
                                   double limit_s)
    : ranks_(std::move(ranks)) {
  refuse_in_function("a communicator");
  ranks_->check_usable();
  auto const& bound = ranks_->bound();
  if (std::any_of(bound.begin(), bound.end(),
                  [](Ranks::Bound* one) { return dynamic_cast<HeldCommunicator*>(one) != nullptr; }))
    refuse(
        "a second communicator of what run_threads has handed out (each end of its ranks has one at a time, "
        "with any number of requests). Use the first one, or close it.");
  {
    Ranks::Use const use(*ranks_);
    if (by == "ofi") fabric_ = open_ofi_transport(ranks_->transport());
    Transport& transport = fabric_ ? *fabric_ : ranks_->transport();
    communicator_ =
        std::make_unique<Communicator>(transport, gpu, by == "nccl" ? QueueType::nccl : QueueType::automatic);
    if (limit_s > 0) communicator_->set_limit(limit_s);
    may_be_used_late_ = transport.capabilities().processes_as_ranks;
  }
  ranks_->add(this);
}

HeldCommunicator::~HeldCommunicator() {
  if (!ranks_->is_here()) {  // of the parent, whose threads did not come along
    static_cast<void>(communicator_.release());
    static_cast<void>(fabric_.release());
    return;
  }
  ranks_->remove(this);
  nb::gil_scoped_release const release;
  end();
}

void HeldCommunicator::end() noexcept {
  communicator_.reset();
  fabric_.reset();
}

void HeldCommunicator::close() {
  refuse_in_function("the end of a communicator");
  if (closed() || !ranks_->is_here()) return;
  {
    Ranks::Use const use(*ranks_, true);
    end();
  }
  ranks_->remove(this);
}

template <class Make>
auto HeldCommunicator::make(char const* what, Make const& of) {
  refuse_in_function(what);
  drop_unkept();
  Ranks::Use const use(*ranks_);
  if (closed()) refuse("the communicator is closed (nobody hears of its requests). Make a new one.");
  return of(*communicator_);
}

template <class Make>
std::unique_ptr<HeldRequest> HeldCommunicator::make_request(nb::object kept, Make const& of) {
  Request const made = make("a new request", of);
  return std::make_unique<HeldRequest>(made, std::move(kept), may_be_used_late_);
}

std::unique_ptr<HeldRequest> HeldCommunicator::send(BufferWords const& buffer, int peer, int tag,
                                                    bool is_ready, nb::object kept) {
  return make_request(std::move(kept), [&](Communicator& c) {
    return is_ready ? c.ready_send_init(buffer.span(), peer, tag) : c.send_init(buffer.span(), peer, tag);
  });
}

std::unique_ptr<HeldRequest> HeldCommunicator::receive(BufferWords const& buffer, int peer, int tag,
                                                       nb::object kept) {
  return make_request(std::move(kept),
                      [&](Communicator& c) { return c.receive_init(buffer.span(), peer, tag); });
}

std::unique_ptr<HeldRequest> HeldCommunicator::barrier(nb::object kept) {
  return make_request(std::move(kept), [](Communicator& c) { return c.barrier_init(); });
}

std::unique_ptr<HeldRequest> HeldCommunicator::all_reduce(BufferWords const& from, BufferWords const& to,
                                                          std::string const& element,
                                                          std::string const& operation, nb::object kept) {
  Datatype const datatype = datatype_from(element);
  ReduceOperation const how = operation_from(operation);
  return make_request(std::move(kept), [&](Communicator& c) {
    return c.all_reduce_init(from.span().data(), to.span().data(), to.bytes / bytes_of(datatype), datatype,
                             how);
  });
}

std::unique_ptr<HeldRequest> HeldCommunicator::broadcast(BufferWords const& buffer, int root,
                                                         nb::object kept) {
  return make_request(std::move(kept),
                      [&](Communicator& c) { return c.broadcast_init(buffer.span(), root); });
}

std::unique_ptr<HeldHalo> HeldCommunicator::halo(HaloWords const& words, nb::object kept) {
  auto made = make("a new halo", [&](Communicator& c) {
    return std::make_unique<QueueHalo>(c, words.grid, words.fields, words.options);
  });
  return std::make_unique<HeldHalo>(std::move(made), std::move(kept));
}

}  // namespace hostless::python
