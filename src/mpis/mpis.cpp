// MPIS_... over hostless/queue.h. Compiled once for each MPI, and once for threads.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "mpis/flavour.hpp"

using namespace hostless::mpis;

namespace {

// A request of MPIS_...; without one of ours it is of MPI_PROC_NULL, and complete whenever it is looked at.
struct Handle {
  hostless_request* of = nullptr;
  int peer = MPI_PROC_NULL, tag = 0;
};

Handle* handle_of(MPIS_Request request) { return reinterpret_cast<Handle*>(request); }
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
}
void write_statuses(int count, MPIS_Request const* requests, MPI_Status* statuses) {
  for (int k = 0; statuses != MPI_STATUSES_IGNORE && k < count; ++k)
    write_status(*handle_of(requests[k]), statuses + k);
}

// Those that are not of MPI_PROC_NULL. False: one is no request.
bool ours(int count, MPIS_Request const* requests, std::vector<hostless_request*>& all) {
  for (int k = 0; k < count; ++k) {
    if (requests[k] == MPIS_REQUEST_NULL) return false;
    if (hostless_request* const of = handle_of(requests[k])->of) all.push_back(of);
  }
  return true;
}

template <class Init>
int make(int peer, int tag, MPI_Comm comm, MPIS_Request* request, Init const& init) {
  if (request == nullptr) return MPIS_INVALID_REQUEST_STATE;
  *request = MPIS_REQUEST_NULL;
  auto handle = std::make_unique<Handle>();
  handle->peer = peer;
  handle->tag = tag;
  if (peer != MPI_PROC_NULL) {
    hostless_transport* const transport = transport_of(comm);
    if (transport == nullptr) return MPIS_UNSUPPORTED_BEHAVIOR;
    int const code = code_of(init(transport, &handle->of));
    if (code != MPIS_SUCCESS) return code;
  }
  *request = reinterpret_cast<MPIS_Request>(handle.release());
  return MPIS_SUCCESS;
}

// Of MPI's as of ours: their values differ between MPIs.
int peer_of(int peer) { return peer == MPI_ANY_SOURCE ? HOSTLESS_ANY_RANK : peer; }
int tag_of(int tag) { return tag == MPI_ANY_TAG ? HOSTLESS_ANY_TAG : tag; }
std::size_t bytes_of(MPI_Count count, MPI_Datatype datatype) {
  return count < 0 ? 0 : static_cast<std::size_t>(count) * packed_bytes(datatype);
}
bool is_packed(MPI_Count count, MPI_Datatype datatype) { return count >= 0 && packed_bytes(datatype) != 0; }

}  // namespace

extern "C" {

int MPIS_Init(int* argc, char*** argv) {
  int provided = 0;
  return begin(argc, argv, &provided);
}
int MPIS_Init_thread(int* argc, char*** argv, int, int* provided) { return begin(argc, argv, provided); }

int MPIS_Queue_init(MPIS_Queue* queue, MPIS_Queue_type type, void*) {
  if (queue == nullptr) return MPIS_INVALID_REQUEST_STATE;
  *queue = MPIS_QUEUE_NULL;
  if (type != THREAD) return MPIS_UNSUPPORTED_BEHAVIOR;
  hostless_queue* made = nullptr;
  int const code = code_of(hostless_queue_init(&made, "auto", nullptr));
  *queue = reinterpret_cast<MPIS_Queue>(made);
  return code;
}
int MPIS_Queue_free(MPIS_Queue* queue) {
  if (queue == nullptr) return MPIS_INVALID_REQUEST_STATE;
  hostless_queue* of = queue_of(*queue);
  int const code = code_of(hostless_queue_free(&of));
  *queue = reinterpret_cast<MPIS_Queue>(of);
  return code;
}
int MPIS_Queue_wait(MPIS_Queue queue) { return code_of(hostless_queue_wait(queue_of(queue))); }

int MPIS_Send_init(void const* buffer, MPI_Count count, MPI_Datatype datatype, int peer, int tag,
                   MPI_Comm comm, MPI_Info, MPIS_Request* request) {
  if (!is_packed(count, datatype)) return MPIS_UNSUPPORTED_BEHAVIOR;
  return make(peer, tag, comm, request, [&](hostless_transport* transport, hostless_request** of) {
    return hostless_send_init(buffer, bytes_of(count, datatype), HOSTLESS_DATA_BYTE, peer_of(peer),
                              tag_of(tag), transport, of);
  });
}
int MPIS_Rsend_init(void const* buffer, MPI_Count count, MPI_Datatype datatype, int peer, int tag,
                    MPI_Comm comm, MPI_Info, MPIS_Request* request) {
  if (!is_packed(count, datatype)) return MPIS_UNSUPPORTED_BEHAVIOR;
  return make(peer, tag, comm, request, [&](hostless_transport* transport, hostless_request** of) {
    return hostless_rsend_init(buffer, bytes_of(count, datatype), HOSTLESS_DATA_BYTE, peer_of(peer),
                               tag_of(tag), transport, of);
  });
}
int MPIS_Recv_init(void* buffer, MPI_Count count, MPI_Datatype datatype, int peer, int tag, MPI_Comm comm,
                   MPI_Info, MPIS_Request* request) {
  if (!is_packed(count, datatype)) return MPIS_UNSUPPORTED_BEHAVIOR;
  return make(peer, tag, comm, request, [&](hostless_transport* transport, hostless_request** of) {
    return hostless_recv_init(buffer, bytes_of(count, datatype), HOSTLESS_DATA_BYTE, peer_of(peer),
                              tag_of(tag), transport, of);
  });
}
int MPIS_Barrier_init(MPI_Comm comm, MPI_Info, MPIS_Request* request) {
  return make(0, 0, comm, request, [](hostless_transport* transport, hostless_request** of) {
    return hostless_barrier_init(transport, of);
  });
}
int MPIS_Allreduce_init(void const* from, void* result, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                        MPI_Comm comm, MPI_Info, MPIS_Request* request) {
  if (count < 0 || datatype_of(datatype) < 0 || reduction_of(op) < 0) return MPIS_UNSUPPORTED_BEHAVIOR;
  return make(0, 0, comm, request, [&](hostless_transport* transport, hostless_request** of) {
    return hostless_allreduce_init(from, result, static_cast<std::size_t>(count), datatype_of(datatype),
                                   reduction_of(op), transport, of);
  });
}

int MPIS_Matchall(int count, MPIS_Request requests[], MPI_Status statuses[]) {
  std::vector<hostless_request*> all;
  if (!ours(count, requests, all)) return MPIS_INVALID_REQUEST_STATE;
  int const code = code_of(hostless_matchall(all.size(), all.data()));
  if (code == MPIS_SUCCESS) write_statuses(count, requests, statuses);
  return code;
}
int MPIS_Match(MPIS_Request* request, MPI_Status* status) { return MPIS_Matchall(1, request, status); }
int MPIS_Queue_match(MPIS_Queue, MPIS_Request* request, MPI_Status* status) {
  return MPIS_Match(request, status);
}
int MPIS_Imatch(MPIS_Request* request, MPIS_Request* match) {
  std::vector<hostless_request*> all;
  if (match == nullptr || !ours(1, request, all)) return MPIS_INVALID_REQUEST_STATE;
  auto handle = std::make_unique<Handle>();
  handle->peer = handle_of(*request)->peer;
  handle->tag = handle_of(*request)->tag;
  int const code = code_of(hostless_imatchall(all.size(), all.data(), &handle->of));
  *match = code == MPIS_SUCCESS ? reinterpret_cast<MPIS_Request>(handle.release()) : MPIS_REQUEST_NULL;
  return code;
}
int MPIS_Is_matched(MPIS_Request* request, int* matched) {
  std::vector<hostless_request*> all;
  if (matched == nullptr || !ours(1, request, all)) return MPIS_INVALID_REQUEST_STATE;
  *matched = 1;
  return all.empty() ? MPIS_SUCCESS : code_of(hostless_is_matched(all.front(), matched));
}

int MPIS_Wait(MPIS_Request* request, MPI_Status* status) {
  std::vector<hostless_request*> all;
  if (request == nullptr || !ours(1, request, all)) return MPIS_INVALID_REQUEST_STATE;
  int const code = all.empty() ? int{MPIS_SUCCESS} : code_of(hostless_request_wait(all.front()));
  if (code != MPIS_SUCCESS) return code;
  write_status(*handle_of(*request), status);
  return MPIS_Request_free(request);
}
int MPIS_Waitall(int count, MPIS_Request requests[], MPI_Status statuses[]) {
  int first = MPIS_SUCCESS;
  for (int k = 0; k < count; ++k) {
    int const code =
        MPIS_Wait(requests + k, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + k);
    if (first == MPIS_SUCCESS) first = code;
  }
  return first;
}

int MPIS_Enqueue_startall(MPIS_Queue queue, int count, MPIS_Request requests[]) {
  std::vector<hostless_request*> all;
  if (!ours(count, requests, all)) return MPIS_INVALID_REQUEST_STATE;
  return code_of(hostless_enqueue_startall(queue_of(queue), all.size(), all.data()));
}
int MPIS_Enqueue_start(MPIS_Queue queue, MPIS_Request* request) {
  return MPIS_Enqueue_startall(queue, 1, request);
}
int MPIS_Enqueue_waitall(MPIS_Queue queue) { return code_of(hostless_enqueue_wait_started(queue_of(queue))); }

int MPIS_Request_free(MPIS_Request* request) {
  if (request == nullptr || *request == MPIS_REQUEST_NULL) return MPIS_INVALID_REQUEST_STATE;
  Handle* const handle = handle_of(*request);
  int const code = handle->of == nullptr ? int{MPIS_SUCCESS} : code_of(hostless_request_free(&handle->of));
  if (code != MPIS_SUCCESS) return code;
  delete handle;
  *request = MPIS_REQUEST_NULL;
  return MPIS_SUCCESS;
}
int MPIS_Request_freeall(int count, MPIS_Request requests[]) {
  int first = MPIS_SUCCESS;
  for (int k = 0; k < count; ++k) {
    int const code = MPIS_Request_free(requests + k);
    if (first == MPIS_SUCCESS) first = code;
  }
  return first;
}

int MPIS_Alloc_mem(MPI_Aint size, MPI_Info info, void** memory) {
  if (memory == nullptr || size < 0) return MPIS_INVALID_REQUEST_STATE;
  *memory = nullptr;
  char kinds[256] = "system";
  int is_there = 0;
  char key[] = "mpi_memory_alloc_kinds";  // which older MPIs take without const
  if (info != MPI_INFO_NULL) MPI_Info_get(info, key, static_cast<int>(sizeof kinds) - 1, kinds, &is_there);
  if (is_there != 0 && std::string(kinds).find("system") == std::string::npos)
    return MPIS_UNSUPPORTED_BEHAVIOR;
  constexpr std::size_t line = 64;
  *memory = std::aligned_alloc(line, (static_cast<std::size_t>(size) + line) / line * line);
  return *memory == nullptr ? MPIS_UNSUPPORTED_BEHAVIOR : MPIS_SUCCESS;
}
int MPIS_Free_mem(void* memory) {
  std::free(memory);
  return MPIS_SUCCESS;
}

}  // extern "C"
