// Queues and requests in the C interface. Handles are looked up before they are used, so that one that was
// freed, or is something else, is refused by its name.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <set>
#include <vector>

#include "api/datatype.hpp"
#include "api/guarded.hpp"
#include "hostless/queue.h"
#include "hostless/queue/queue.hpp"
#include "hostless/transport/ofi.hpp"

using namespace hostless::c_interface;

struct hostless_request {
  hostless::Request request;
};
struct hostless_queue {
  hostless::Queue queue;
};

namespace {

template <class Handle>
class Live {
 public:
  void add(Handle* handle) {
    std::lock_guard const lock(mutex_);
    handles_.insert(handle);
  }
  void remove(Handle* handle) {
    std::lock_guard const lock(mutex_);
    handles_.erase(handle);
  }
  bool has(Handle* handle) {
    std::lock_guard const lock(mutex_);
    return handles_.count(handle) != 0;
  }

 private:
  std::mutex mutex_;
  std::set<void const*> handles_;
};

template <class Handle>
Live<Handle>& live() {
  static Live<Handle>* const all = new Live<Handle>;  // a program's last threads may still ask
  return *all;
}

hostless::Request& request_of(hostless_request* handle) {
  if (handle == nullptr)
    throw hostless::QueueError(hostless::Refusal::no_request,
                               "request is NULL (it was never made, or freed).");
  if (!live<hostless_request>().has(handle))
    throw hostless::QueueError(
        hostless::Refusal::no_request,
        "request is no handle of this interface (it was freed, or is another library's). "
        "Make it with one of the _init functions of hostless/queue.h.");
  return handle->request;
}

hostless::Queue& queue_of(hostless_queue* handle) {
  need(handle, "queue is NULL.");
  if (!live<hostless_queue>().has(handle)) misused("queue is no queue (it was freed, or is something else).");
  return handle->queue;
}

/// The Refusal is the code.
template <class Work>
int answered(Work const& work) noexcept {
  int code = HOSTLESS_OK;
  int const other = guarded([&] {
    try {
      work();
    } catch (hostless::QueueError const& e) {
      code = failed(static_cast<int>(e.why()), e.what());
    }
  });
  return code != HOSTLESS_OK ? code : other;
}

std::vector<hostless::Request*> all_of(std::size_t count, hostless_request* const requests[],
                                       char const* problem = "requests is NULL.") {
  if (count != 0) need(requests, problem);
  std::vector<hostless::Request*> all;
  for (std::size_t k = 0; k < count; ++k) all.push_back(&request_of(requests[k]));
  return all;
}

template <class Byte>
std::span<Byte> bytes_at(Byte* buffer, std::size_t count, int datatype) {
  std::size_t const one = hostless::bytes_of(datatype_of(datatype));
  if (count > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / one)
    misused("count: " + std::to_string(count) + " elements of " + std::to_string(one) +
            " bytes (no memory has as many). Give their number.");
  std::size_t const bytes = count * one;
  if (bytes != 0) need(buffer, "buffer is NULL.");
  return {buffer, bytes};
}

hostless::Communicator& communicator_of(hostless_transport* transport) {
  need(transport, "transport is NULL.");
  if (!transport->communicator)
    transport->communicator = std::make_unique<hostless::Communicator>(*transport->transport);
  return *transport->communicator;
}

void make_communicator(hostless_transport* transport, int gpu, hostless::QueueType by) {
  need(transport, "transport is NULL.");
  if (gpu < 0) misused("gpu: " + std::to_string(gpu) + " (they count from 0). Use another number.");
  if (transport->communicator)
    misused("gpu: " + std::to_string(gpu) +
            " for a transport over which requests were made (all of them are one GPU's, or the host's). "
            "Say it before.");
  transport->communicator = std::make_unique<hostless::Communicator>(*transport->transport, gpu, by);
}

template <class Make>
int make(hostless_request** request, Make const& of) noexcept {
  return answered([&] {
    clear(request);
    need(request, "request is NULL.");
    auto made = std::make_unique<hostless_request>();
    made->request = of();
    live<hostless_request>().add(made.get());
    *request = made.release();
  });
}

}  // namespace

extern "C" {

int hostless_queue_init(hostless_queue** queue, char const* type, void* stream) {
  return answered([&] {
    clear(queue);
    need(queue, "queue is NULL.");
    auto made = std::unique_ptr<hostless_queue>(new hostless_queue{hostless::Queue(
        type == nullptr ? hostless::QueueType::automatic : hostless::queue_type_from(type), stream)});
    live<hostless_queue>().add(made.get());
    *queue = made.release();
  });
}

int hostless_queue_free(hostless_queue** queue) {
  return answered([&] {
    need(queue, "queue is NULL.");
    hostless::Queue& of = queue_of(*queue);
    if (!of.is_idle())
      throw hostless::QueueError(
          hostless::Refusal::in_use,
          "a queue that has work, or a start without a wait (requests use it). Enqueue "
          "waits, and call hostless_queue_wait.");
    live<hostless_queue>().remove(*queue);
    delete *queue;
    *queue = nullptr;
  });
}

int hostless_queue_wait(hostless_queue* queue) {
  return answered([&] { queue_of(queue).wait(); });
}
int hostless_queue_test(hostless_queue* queue, int* done) {
  return answered([&] {
    need(done, "done is NULL.");
    *done = queue_of(queue).test() ? 1 : 0;
  });
}
int hostless_queue_set_limit(hostless_queue* queue, double seconds) {
  return answered([&] { queue_of(queue).set_limit(seconds); });
}

int hostless_requests_set_limit(hostless_transport* transport, double seconds) {
  return answered([&] { communicator_of(transport).set_limit(seconds); });
}

int hostless_requests_on_gpu(hostless_transport* transport, int gpu) {
  return answered([&] { make_communicator(transport, gpu, hostless::QueueType::peer); });
}
int hostless_requests_over_nccl(hostless_transport* transport, int gpu) {
  return answered([&] { make_communicator(transport, gpu, hostless::QueueType::nccl); });
}

int hostless_requests_over_fabric(hostless_transport* transport) {
  return answered([&] {
    need(transport, "transport is NULL.");
    if (transport->communicator || transport->fabric)
      misused("requests were made over the transport, or are libfabric's already. Say it before, once.");
    if (!transport->transport->capabilities().processes_as_ranks)
      throw hostless::QueueError(
          hostless::Refusal::unsupported,
          "libfabric between ranks that are threads (they load and store in one memory). Use "
          "a queue of the type threads.");
    transport->fabric = hostless::open_ofi_transport(*transport->transport);
    transport->transport = transport->fabric.get();
  });
}

int hostless_send_init(void const* buffer, size_t count, int datatype, int peer, int tag,
                       hostless_transport* transport, hostless_request** request) {
  return make(request, [&] {
    auto const bytes = bytes_at(static_cast<std::byte const*>(buffer), count, datatype);
    return communicator_of(transport).send_init(bytes, peer, tag);
  });
}
int hostless_rsend_init(void const* buffer, size_t count, int datatype, int peer, int tag,
                        hostless_transport* transport, hostless_request** request) {
  return make(request, [&] {
    auto const bytes = bytes_at(static_cast<std::byte const*>(buffer), count, datatype);
    return communicator_of(transport).ready_send_init(bytes, peer, tag);
  });
}
int hostless_recv_init(void* buffer, size_t count, int datatype, int peer, int tag,
                       hostless_transport* transport, hostless_request** request) {
  return make(request, [&] {
    auto const bytes = bytes_at(static_cast<std::byte*>(buffer), count, datatype);
    return communicator_of(transport).receive_init(bytes, peer, tag);
  });
}
int hostless_barrier_init(hostless_transport* transport, hostless_request** request) {
  return make(request, [&] { return communicator_of(transport).barrier_init(); });
}
int hostless_allreduce_init(void const* from, void* result, size_t count, int datatype, int reduction,
                            hostless_transport* transport, hostless_request** request) {
  return make(request, [&] {
    static_assert(static_cast<int>(hostless::ReduceOperation::maximum) == HOSTLESS_MAXIMUM);
    bytes_at(static_cast<std::byte const*>(from), count, datatype);
    bytes_at(static_cast<std::byte const*>(result), count, datatype);
    if (reduction < HOSTLESS_SUM || reduction > HOSTLESS_MAXIMUM)
      misused("reduction: " + std::to_string(reduction) + " (there is none). Use one of hostless_reduction.");
    return communicator_of(transport).all_reduce_init(from, result, count, datatype_of(datatype),
                                                      static_cast<hostless::ReduceOperation>(reduction));
  });
}
int hostless_broadcast_init(void* buffer, size_t count, int datatype, int root, hostless_transport* transport,
                            hostless_request** request) {
  return make(request, [&] {
    auto const bytes = bytes_at(static_cast<std::byte*>(buffer), count, datatype);
    return communicator_of(transport).broadcast_init(bytes, root);
  });
}

int hostless_matchall(size_t count, hostless_request* const requests[]) {
  return answered([&] { hostless::match(all_of(count, requests)); });
}
int hostless_match(hostless_request* request) { return hostless_matchall(1, &request); }
int hostless_imatchall(size_t count, hostless_request* const requests[], hostless_request** match) {
  return make(match, [&] { return hostless::begin_match(all_of(count, requests)); });
}
int hostless_imatch(hostless_request* request, hostless_request** match) {
  return hostless_imatchall(1, &request, match);
}
int hostless_is_matched(hostless_request* request, int* matched) {
  return answered([&] {
    need(matched, "matched is NULL.");
    *matched = request_of(request).is_matched() ? 1 : 0;
  });
}

int hostless_request_wait(hostless_request* request) {
  return answered([&] { request_of(request).wait(); });
}
int hostless_request_test(hostless_request* request, int* done) {
  return answered([&] {
    need(done, "done is NULL.");
    *done = request_of(request).test() ? 1 : 0;
  });
}
int hostless_request_cancel(hostless_request* request) {
  return answered([&] { request_of(request).cancel(); });
}
int hostless_request_free(hostless_request** request) {
  return answered([&] {
    need(request, "request is NULL.");
    request_of(*request).free();
    live<hostless_request>().remove(*request);
    delete *request;
    *request = nullptr;
  });
}
int hostless_request_get_status(hostless_request* request, hostless_request_status* status) {
  return answered([&] {
    need(status, "status is NULL.");
    hostless::RequestStatus const now = request_of(request).status();
    *status = {sizeof(hostless_request_status), now.peer, now.tag, now.bytes, now.starts, now.lost ? 1 : 0};
  });
}

int hostless_enqueue_startall(hostless_queue* queue, size_t count, hostless_request* const requests[]) {
  return answered([&] { queue_of(queue).enqueue_start(all_of(count, requests)); });
}
int hostless_enqueue_start(hostless_queue* queue, hostless_request* request) {
  return hostless_enqueue_startall(queue, 1, &request);
}
int hostless_enqueue_waitall(hostless_queue* queue, size_t count, hostless_request* const requests[]) {
  return answered([&] { queue_of(queue).enqueue_wait(all_of(count, requests)); });
}
int hostless_enqueue_wait(hostless_queue* queue, hostless_request* request) {
  return hostless_enqueue_waitall(queue, 1, &request);
}
int hostless_enqueue_start_and_wait(hostless_queue* queue, size_t start_count,
                                    hostless_request* const starts[], size_t wait_count,
                                    hostless_request* const waits[]) {
  return answered([&] {
    hostless::Queue& of = queue_of(queue);
    of.enqueue_start_and_wait(all_of(start_count, starts, "starts is NULL."),
                              all_of(wait_count, waits, "waits is NULL."));
  });
}
int hostless_enqueue_wait_started(hostless_queue* queue) {
  return answered([&] { queue_of(queue).enqueue_wait_all(); });
}
int hostless_enqueue_function(hostless_queue* queue, void (*work)(void*), void* user) {
  return answered([&] {
    hostless::Queue& of = queue_of(queue);
    need(reinterpret_cast<void const*>(work), "work is NULL.");
    of.enqueue_function([=] { work(user); });
  });
}

}  // extern "C"
