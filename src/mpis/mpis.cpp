// MPIS_... over hostless/queue.h. Compiled once for each MPI, and once for threads.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "api/guarded.hpp"
#include "mpis/flavour.hpp"
#include "queue/gpu/message_library.hpp"

using namespace hostless::mpis;

namespace {

// A request of MPIS_...; without one of ours it is of MPI_PROC_NULL, and complete whenever it is looked at.
struct Handle {
  hostless_request* of = nullptr;
  int peer = MPI_PROC_NULL, tag = 0;
  MPIS_Request matches = MPIS_REQUEST_NULL;  // of the request of a match
  std::size_t bytes = 0;                     // of a match that is complete: as many as will come
};

// What a program holds is a number that is never used again, so that one of a freed request is known as such.
class Handles {
 public:
  MPIS_Request add(Handle const& handle) {
    std::lock_guard const lock(mutex_);
    all_.emplace(++last_, handle);
    return last_;
  }
  // NULL: no request. It stays where it is until it is removed.
  Handle* find(MPIS_Request request) {
    std::lock_guard const lock(mutex_);
    auto const found = all_.find(request);
    return found == all_.end() ? nullptr : &found->second;
  }
  void remove(MPIS_Request request) {
    std::lock_guard const lock(mutex_);
    all_.erase(request);
  }

 private:
  std::mutex mutex_;
  std::map<MPIS_Request, Handle> all_;
  MPIS_Request last_ = MPIS_REQUEST_NULL;
};
Handles& handles() {
  static Handles* const all = new Handles;  // a program's last threads may still ask
  return *all;
}

// What this layer itself refuses.
int refused(int code, char const* text) { return hostless::c_interface::failed(code, text); }
int refused_request() {
  return refused(MPIS_INVALID_REQUEST_STATE,
                 "the request is none (it was never made, or freed). Make it with one of MPIS_..._init.");
}
int refused_pointer(char const* what) {
  return refused(MPIS_INVALID_REQUEST_STATE, (std::string(what) + " is NULL.").c_str());
}

// Streams of GPUs' queues that were given none, and memory of MPIS_Alloc_mem, by their handles.
class HeldByHandle {
 public:
  void add(std::uintptr_t of, std::shared_ptr<void> what) {
    std::lock_guard const lock(mutex_);
    all_[of] = std::move(what);
  }
  std::shared_ptr<void> remove(std::uintptr_t of) {
    std::lock_guard const lock(mutex_);
    auto const found = all_.extract(of);
    return found.empty() ? nullptr : std::move(found.mapped());
  }
  bool has(std::uintptr_t of) {
    std::lock_guard const lock(mutex_);
    return all_.count(of) != 0;
  }

 private:
  std::mutex mutex_;
  std::map<std::uintptr_t, std::shared_ptr<void>> all_;
};
HeldByHandle& queues() {
  static HeldByHandle* const all = new HeldByHandle;
  return *all;
}
HeldByHandle& memories() {
  static HeldByHandle* const all = new HeldByHandle;
  return *all;
}

hostless_queue* queue_of(MPIS_Queue queue) { return reinterpret_cast<hostless_queue*>(queue); }

int code_of(int code) {
  switch (code) {
    case HOSTLESS_OK:
      return MPIS_SUCCESS;
    case HOSTLESS_NOT_MATCHED:
      return MPIS_NOT_READY;
    case HOSTLESS_PEER_LOST:
      return MPIS_PEER_LOST;
    case HOSTLESS_NO_REQUEST:
    case HOSTLESS_NOT_PERSISTENT:
    case HOSTLESS_ALREADY_MATCHED:
    case HOSTLESS_ALREADY_STARTED:
    case HOSTLESS_NOT_STARTED:
    case HOSTLESS_OTHER_QUEUE:
    case HOSTLESS_IN_USE:
    case HOSTLESS_TOO_MANY:
    case HOSTLESS_TWICE:
      return MPIS_INVALID_REQUEST_STATE;
    default:
      return MPIS_UNSUPPORTED_BEHAVIOR;
  }
}

void write_status(Handle const& handle, MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = handle.peer;
  status->MPI_TAG = handle.tag;
  status->MPI_ERROR = MPI_SUCCESS;
  write_bytes(*status, handle.bytes);
}

// of: the persistent request; NULL: of MPI_PROC_NULL, from which nothing comes.
void learn_bytes(Handle& handle, hostless_request* of) {
  hostless_request_status status{};
  if (of != nullptr && hostless_request_get_status(of, &status) == HOSTLESS_OK) handle.bytes = status.bytes;
}

// The requests of a call, and those of them that are not of MPI_PROC_NULL.
struct Given {
  std::vector<Handle*> handles;
  std::vector<hostless_request*> ours;
};
int look_up(int count, MPIS_Request const* requests, Given& given) {
  if (count < 0) return refused(MPIS_INVALID_REQUEST_STATE, "count is below 0.");
  if (count != 0 && requests == nullptr) return refused_pointer("requests");
  for (int k = 0; k < count; ++k) {
    Handle* const handle = handles().find(requests[k]);
    if (handle == nullptr) return refused_request();
    given.handles.push_back(handle);
    if (handle->of != nullptr) given.ours.push_back(handle->of);
  }
  return MPIS_SUCCESS;
}

template <class Init>
int make(int peer, int tag, MPI_Comm comm, MPIS_Request* request, Init const& init) {
  if (request == nullptr) return refused_pointer("request");
  *request = MPIS_REQUEST_NULL;
  Handle handle;
  handle.peer = peer;
  handle.tag = tag;
  if (comm == MPI_COMM_NULL)
    return refused(MPIS_UNSUPPORTED_BEHAVIOR,
                   "comm is MPI_COMM_NULL (it has no ranks). Give a communicator.");
  if (!is_started())
    return refused(
        MPIS_UNSUPPORTED_BEHAVIOR,
        "a request before MPI_Init or after MPI_Finalize (there are no ranks). Make it between them.");
  if (peer != MPI_PROC_NULL) {
    hostless_transport* const transport = transport_of(comm);
    if (transport == nullptr) return MPIS_UNSUPPORTED_BEHAVIOR;
    int const code = code_of(init(transport, &handle.of));
    if (code != MPIS_SUCCESS) return code;
  }
  *request = handles().add(handle);
  return MPIS_SUCCESS;
}

// Of MPI's as of ours: their values differ between MPIs.
int peer_of(int peer) { return peer == MPI_ANY_SOURCE ? HOSTLESS_ANY_RANK : peer; }
int tag_of(int tag) { return tag == MPI_ANY_TAG ? HOSTLESS_ANY_TAG : tag; }

// A message of whole elements, as its bytes.
template <class Init, class Buffer>
int make_message(Init init, Buffer* buffer, MPI_Count count, MPI_Datatype datatype, int peer, int tag,
                 MPI_Comm comm, MPIS_Request* request) {
  std::size_t const one = is_started() ? packed_bytes(datatype) : 1;  // else `make` refuses it
  if (one == 0)
    return refused(
        MPIS_UNSUPPORTED_BEHAVIOR,
        "a datatype with gaps or in another order than it lies, or none (bytes are carried as they lie). "
        "Pack it.");
  if (count < 0 || static_cast<std::size_t>(count) > std::numeric_limits<std::size_t>::max() / 2 / one)
    return refused(MPIS_UNSUPPORTED_BEHAVIOR,
                   ("count: " + std::to_string(count) + " elements of " + std::to_string(one) +
                    " bytes (no memory has as many). Give their number.")
                       .c_str());
  return make(peer, tag, comm, request, [&](hostless_transport* transport, hostless_request** of) {
    return init(buffer, static_cast<std::size_t>(count) * one, HOSTLESS_DATA_BYTE, peer_of(peer), tag_of(tag),
                transport, of);
  });
}

// of(k) for all; the first code that is none of success.
template <class One>
int first_failure(int count, MPIS_Request const* requests, One const& of) {
  if (count > 0 && requests == nullptr) return refused_pointer("requests");
  int first = MPIS_SUCCESS;
  for (int k = 0; k < count; ++k) {
    int const code = of(k);
    if (first == MPIS_SUCCESS) first = code;
  }
  return first;
}

}  // namespace

extern "C" {

int MPIS_Init(int* argc, char*** argv) {
  int provided = 0;
  return begin(argc, argv, &provided);
}
int MPIS_Init_thread(int* argc, char*** argv, int, int* provided) { return begin(argc, argv, provided); }

int MPIS_Queue_init(MPIS_Queue* queue, MPIS_Queue_type type, void* stream) {
  if (queue == nullptr) return refused_pointer("queue");
  *queue = MPIS_QUEUE_NULL;
  hostless_queue* made = nullptr;
  std::shared_ptr<void> own;
  if (type == GPU_MEM_OPS) {
    int const gpu = gpu_of_rank();
    if (gpu < 0)
      return refused(
          MPIS_UNSUPPORTED_BEHAVIOR,
          "a queue of GPU_MEM_OPS whose requests are the host's (streams work between ranks that are "
          "threads). Link hostless_mpis_threads and set HOSTLESS_MPIS_GPUS, or use THREAD.");
    if (stream == nullptr && hostless::c_interface::guarded([&] {
                               own = hostless::gpu::message_library().own_stream(gpu);
                             }) != HOSTLESS_OK)
      return MPIS_UNSUPPORTED_BEHAVIOR;
    void* const used = stream == nullptr ? own.get() : *static_cast<void**>(stream);
    if (int const code = code_of(hostless_queue_init(&made, "peer", used)); code != MPIS_SUCCESS) return code;
  } else if (type == THREAD) {
    if (int const code = code_of(hostless_queue_init(&made, "auto", nullptr)); code != MPIS_SUCCESS)
      return code;
  } else {
    return refused(MPIS_UNSUPPORTED_BEHAVIOR, ("a queue of the type " + std::to_string(type) +
                                               " (there is none). Use THREAD or GPU_MEM_OPS.")
                                                  .c_str());
  }
  *queue = reinterpret_cast<MPIS_Queue>(made);
  queues().add(*queue, std::move(own));
  return MPIS_SUCCESS;
}
int MPIS_Queue_free(MPIS_Queue* queue) {
  if (queue == nullptr) return refused_pointer("queue");
  hostless_queue* of = queue_of(*queue);
  int const code = code_of(hostless_queue_free(&of));
  if (code == MPIS_SUCCESS) queues().remove(*queue);
  *queue = reinterpret_cast<MPIS_Queue>(of);
  return code;
}
int MPIS_Queue_wait(MPIS_Queue queue) { return code_of(hostless_queue_wait(queue_of(queue))); }

int MPIS_Send_init(void const* buffer, MPI_Count count, MPI_Datatype datatype, int peer, int tag,
                   MPI_Comm comm, MPI_Info, MPIS_Request* request) {
  return make_message(&hostless_send_init, buffer, count, datatype, peer, tag, comm, request);
}
int MPIS_Rsend_init(void const* buffer, MPI_Count count, MPI_Datatype datatype, int peer, int tag,
                    MPI_Comm comm, MPI_Info, MPIS_Request* request) {
  return make_message(&hostless_rsend_init, buffer, count, datatype, peer, tag, comm, request);
}
int MPIS_Recv_init(void* buffer, MPI_Count count, MPI_Datatype datatype, int peer, int tag, MPI_Comm comm,
                   MPI_Info, MPIS_Request* request) {
  return make_message(&hostless_recv_init, buffer, count, datatype, peer, tag, comm, request);
}
int MPIS_Barrier_init(MPI_Comm comm, MPI_Info, MPIS_Request* request) {
  return make(0, 0, comm, request, [](hostless_transport* transport, hostless_request** of) {
    return hostless_barrier_init(transport, of);
  });
}
int MPIS_Allreduce_init(void const* from, void* result, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                        MPI_Comm comm, MPI_Info, MPIS_Request* request) {
  if (count < 0 || datatype_of(datatype) < 0 || reduction_of(op) < 0)
    return refused(
        MPIS_UNSUPPORTED_BEHAVIOR,
        "a count below 0, or a datatype or an operation that is not reduced. Use integers, floats or "
        "bytes, and sum, product, minimum or maximum.");
  if (from == MPI_IN_PLACE) from = result;
  return make(0, 0, comm, request, [&](hostless_transport* transport, hostless_request** of) {
    return hostless_allreduce_init(from, result, static_cast<std::size_t>(count), datatype_of(datatype),
                                   reduction_of(op), transport, of);
  });
}

int MPIS_Matchall(int count, MPIS_Request requests[], MPI_Status statuses[]) {
  Given given;
  if (int const code = look_up(count, requests, given); code != MPIS_SUCCESS) return code;
  int const code = code_of(hostless_matchall(given.ours.size(), given.ours.data()));
  if (code == MPIS_SUCCESS)
    for (Handle* const handle : given.handles) learn_bytes(*handle, handle->of);
  for (std::size_t k = 0; code == MPIS_SUCCESS && statuses != MPI_STATUSES_IGNORE && k < given.handles.size();
       ++k)
    write_status(*given.handles[k], statuses + k);
  return code;
}
int MPIS_Match(MPIS_Request* request, MPI_Status* status) { return MPIS_Matchall(1, request, status); }
int MPIS_Queue_match(MPIS_Queue queue, MPIS_Request* request, MPI_Status* status) {
  if (!queues().has(queue))
    return refused(MPIS_UNSUPPORTED_BEHAVIOR,
                   "queue is no queue (it was never made, or freed). Make it with MPIS_Queue_init.");
  return MPIS_Match(request, status);
}
int MPIS_Imatch(MPIS_Request* request, MPIS_Request* match) {
  if (match == nullptr) return refused_pointer("match");
  *match = MPIS_REQUEST_NULL;
  Given given;
  if (int const code = look_up(1, request, given); code != MPIS_SUCCESS) return code;
  Handle handle = *given.handles.front();
  handle.of = nullptr;
  handle.matches = *request;
  int const code = code_of(hostless_imatchall(given.ours.size(), given.ours.data(), &handle.of));
  if (code == MPIS_SUCCESS) *match = handles().add(handle);
  return code;
}
int MPIS_Is_matched(MPIS_Request* request, int* matched) {
  if (matched == nullptr) return refused_pointer("matched");
  Given given;
  if (int const code = look_up(1, request, given); code != MPIS_SUCCESS) return code;
  *matched = 1;
  return given.ours.empty() ? MPIS_SUCCESS : code_of(hostless_is_matched(given.ours.front(), matched));
}

int MPIS_Wait(MPIS_Request* request, MPI_Status* status) {
  Given given;
  if (int const code = look_up(1, request, given); code != MPIS_SUCCESS) return code;
  if (given.ours.empty() && given.handles.front()->matches == MPIS_REQUEST_NULL)
    return refused(MPIS_INVALID_REQUEST_STATE,
                   "a wait for a persistent request (hosts wait for matches alone). Wait for its queue.");
  int const code =
      given.ours.empty() ? int{MPIS_SUCCESS} : code_of(hostless_request_wait(given.ours.front()));
  if (code != MPIS_SUCCESS) return code;
  Handle& handle = *given.handles.front();
  Handle const* const matched = handles().find(handle.matches);  // none: it was freed since
  if (matched != nullptr) learn_bytes(handle, matched->of);
  write_status(handle, status);
  return MPIS_Request_free(request);
}
int MPIS_Waitall(int count, MPIS_Request requests[], MPI_Status statuses[]) {
  return first_failure(count, requests, [&](int k) {
    return MPIS_Wait(requests + k, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + k);
  });
}

int MPIS_Enqueue_startall(MPIS_Queue queue, int count, MPIS_Request requests[]) {
  Given given;
  if (int const code = look_up(count, requests, given); code != MPIS_SUCCESS) return code;
  return code_of(hostless_enqueue_startall(queue_of(queue), given.ours.size(), given.ours.data()));
}
int MPIS_Enqueue_start(MPIS_Queue queue, MPIS_Request* request) {
  return MPIS_Enqueue_startall(queue, 1, request);
}
int MPIS_Enqueue_waitall(MPIS_Queue queue) { return code_of(hostless_enqueue_wait_started(queue_of(queue))); }

int MPIS_Request_free(MPIS_Request* request) {
  if (request == nullptr) return refused_pointer("request");
  Handle* const handle = handles().find(*request);
  if (handle == nullptr) return refused_request();
  int const code = handle->of == nullptr ? int{MPIS_SUCCESS} : code_of(hostless_request_free(&handle->of));
  if (code != MPIS_SUCCESS) return code;
  handles().remove(*request);
  *request = MPIS_REQUEST_NULL;
  return MPIS_SUCCESS;
}
int MPIS_Request_freeall(int count, MPIS_Request requests[]) {
  return first_failure(count, requests, [&](int k) { return MPIS_Request_free(requests + k); });
}

int MPIS_Alloc_mem(MPI_Aint size, MPI_Info info, void** memory) {
  if (memory == nullptr) return refused_pointer("memory");
  *memory = nullptr;
  char kinds[256] = "system";
  int is_there = 0;
  char key[] = "mpi_memory_alloc_kinds";  // which older MPIs take without const
  if (info != MPI_INFO_NULL) MPI_Info_get(info, key, static_cast<int>(sizeof kinds) - 1, kinds, &is_there);
  bool const in_gpu =
      std::strstr(kinds, "cuda:device") != nullptr || std::strstr(kinds, "rocm:device") != nullptr;
  int const gpu = gpu_of_rank();
  if (std::strstr(kinds, "system") == nullptr && !(in_gpu && gpu >= 0))
    return refused(MPIS_UNSUPPORTED_BEHAVIOR, (std::string("mpi_memory_alloc_kinds: ") + kinds +
                                               " (this rank has memory of the host). Ask for system.")
                                                  .c_str());
  if (size < 0)
    return refused(MPIS_UNSUPPORTED_BEHAVIOR, ("no memory of " + std::to_string(size) + " bytes.").c_str());
  auto const bytes = static_cast<std::size_t>(size);
  int const code = hostless::c_interface::guarded([&] {
    std::shared_ptr<void> taken;
    constexpr std::size_t line = 64;
    if (gpu < 0)
      taken = std::shared_ptr<void>(std::aligned_alloc(line, (bytes + line) / line * line),
                                    [](void* m) { std::free(m); });
    else if (in_gpu)
      taken = hostless::gpu::message_library().memory(gpu, bytes);
    else
      taken = hostless::gpu::message_library().pinned(gpu, std::max<std::size_t>(bytes, 1));
    if (taken == nullptr) throw std::bad_alloc();
    *memory = taken.get();
    memories().add(reinterpret_cast<std::uintptr_t>(taken.get()), taken);
  });
  return code == HOSTLESS_OK ? int{MPIS_SUCCESS} : int{MPIS_UNSUPPORTED_BEHAVIOR};
}
int MPIS_Free_mem(void* memory) {
  if (memory == nullptr) return MPIS_SUCCESS;
  return memories().remove(reinterpret_cast<std::uintptr_t>(memory)) != nullptr
             ? int{MPIS_SUCCESS}
             : refused(MPIS_INVALID_REQUEST_STATE,
                       "memory that MPIS_Alloc_mem has not given, or that was freed.");
}

}  // extern "C"
