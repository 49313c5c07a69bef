#include "fake_runtime.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "hip/hip_runtime.h"

struct FakeStream {
  hipGraph_t recording = nullptr;
};
struct FakeEvent {
  bool is_timed = false;
};
struct FakeNode {};
struct FakeGraph {
  int kernels = 0;
};
struct FakeExec {
  int kernels = 0;
};

namespace {

std::atomic<int> all_calls{0}, failing{-1}, all_held{0}, all_launches{0}, all_timed{0}, launched_on{-1};
std::atomic<bool> linked{true}, busy{false};
std::mutex memory_mutex;
std::map<void*, std::size_t> blocks;
std::map<void*, int> open_handles;
int too_early = 0;
std::size_t taken = 0, limit = std::size_t{1} << 40;
thread_local int device = 0;
std::function<void()> waiting;
std::function<void(void**)> launching;

hipError_t call() { return all_calls++ == failing ? hipErrorUnknown : hipSuccess; }
template <class T>
hipError_t make(T** to) {
  if (call() != hipSuccess) return hipErrorUnknown;
  *to = new T;
  ++all_held;
  return hipSuccess;
}
template <class T>
hipError_t give_back(T* what) {
  delete what;
  --all_held;
  return hipSuccess;
}
hipError_t allocate(void** to, std::size_t bytes) {
  if (call() != hipSuccess) return hipErrorUnknown;
  std::lock_guard const lock(memory_mutex);
  if (taken + bytes > limit) return hipErrorMemoryAllocation;
  *to = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  std::memset(*to, 0x5b, bytes);  // nobody has cleared it
  taken += blocks[*to] = bytes;
  ++all_held;
  return hipSuccess;
}
hipError_t release(void* what) {
  std::lock_guard const lock(memory_mutex);
  auto const found = blocks.find(what);
  if (found == blocks.end()) std::abort();  // given back twice, or never taken
  taken -= found->second;
  if (open_handles.count(what) != 0) ++too_early;
  blocks.erase(found);
  std::free(what);
  --all_held;
  return hipSuccess;
}
hipError_t copy(void* to, void const* from, std::size_t bytes) {
  if (call() != hipSuccess) return hipErrorUnknown;
  std::memcpy(to, from, bytes);
  return hipSuccess;
}

}  // namespace

namespace hostless::test::fake_runtime {
void begin_again() {
  all_calls = all_launches = all_timed = 0;
  failing = -1;
  linked = true;
  limit = std::size_t{1} << 40;
  waiting = nullptr;
  busy = false;
  launching = nullptr;
  too_early = 0;
}
void fail_call(int from_now) { failing = from_now < 0 ? -1 : all_calls + from_now; }
int calls() { return all_calls; }
int held() { return all_held; }
int opened() {
  std::lock_guard const lock(memory_mutex);
  int all = 0;
  for (auto const& one : open_handles) all += one.second;
  return all;
}
int freed_while_open() { return too_early; }
void limit_memory(std::size_t bytes) { limit = bytes; }
void links(bool exist) { linked = exist; }
void forget_held() { all_held = 0; }
int device_of_last_launch() { return launched_on; }
int device_in_use() { return device; }
int timed_events() { return all_timed; }
int launches() { return all_launches; }
void at_waits(std::function<void()> what) { waiting = std::move(what); }
void keep_streams_busy(bool are_busy) { busy = are_busy; }
void at_launches(std::function<void(void**)> what) { launching = std::move(what); }
}  // namespace hostless::test::fake_runtime

char const* hipGetErrorString(hipError_t code) {
  return code == hipErrorMemoryAllocation ? "out of memory" : "told to fail";
}
hipError_t hipGetLastError() { return hipSuccess; }
hipError_t hipMalloc(void** to, std::size_t bytes) { return allocate(to, bytes); }
hipError_t hipExtMallocWithFlags(void** to, std::size_t bytes, unsigned) { return allocate(to, bytes); }
hipError_t hipFree(void* what) { return release(what); }
hipError_t hipHostMalloc(void** to, std::size_t bytes, unsigned) { return allocate(to, bytes); }
hipError_t hipHostFree(void* what) { return release(what); }
hipError_t hipHostGetDevicePointer(void** to, void* host, unsigned) {
  *to = host;
  return call();
}
hipError_t hipMemset(void* to, int value, std::size_t bytes) {
  if (call() != hipSuccess) return hipErrorUnknown;
  std::memset(to, value, bytes);
  return hipSuccess;
}
hipError_t hipMemcpy(void* to, void const* from, std::size_t bytes, hipMemcpyKind) {
  return copy(to, from, bytes);
}
hipError_t hipMemcpyAsync(void* to, void const* from, std::size_t bytes, hipMemcpyKind, hipStream_t) {
  return copy(to, from, bytes);
}
hipError_t hipMemGetInfo(std::size_t* now, std::size_t* total) {
  std::lock_guard const lock(memory_mutex);
  *now = limit - taken;
  *total = limit;
  return call();
}
hipError_t hipGetDevice(int* to) {
  *to = device;
  return call();
}
hipError_t hipGetDeviceCount(int* to) {
  *to = 2;
  return call();
}
hipError_t hipPointerGetAttributes(hipPointerAttribute_t* to, void const*) {
  *to = {device, nullptr};
  return call();
}
hipError_t hipSetDevice(int which) {
  device = which;
  return call();
}
hipError_t hipDeviceGetPCIBusId(char* to, int size, int which) {
  std::snprintf(to, static_cast<std::size_t>(size), "0000:%02x:00.0", which);
  return call();
}
hipError_t hipDeviceGetAttribute(int* to, hipDeviceAttribute_t, int) {
  *to = 1'000'000;
  return call();
}
hipError_t hipGetDeviceProperties(hipDeviceProp_t* to, int) {
  to->multiProcessorCount = 4;
  return call();
}
hipError_t hipDeviceCanAccessPeer(int* to, int, int) {
  *to = linked ? 1 : 0;
  return call();
}
hipError_t hipDeviceEnablePeerAccess(int, unsigned) { return call(); }
hipError_t hipDeviceGetStreamPriorityRange(int* last, int* first) {
  *last = *first = 0;
  return call();
}
// A handle is the address: there is one process.
hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t* to, void* what) {
  std::memcpy(to, &what, sizeof what);
  return call();
}
hipError_t hipIpcOpenMemHandle(void** to, hipIpcMemHandle_t handle, unsigned) {
  if (call() != hipSuccess) return hipErrorUnknown;
  std::memcpy(to, &handle, sizeof *to);
  std::lock_guard const lock(memory_mutex);
  ++open_handles[*to];
  ++all_held;
  return hipSuccess;
}
hipError_t hipIpcCloseMemHandle(void* what) {
  std::lock_guard const lock(memory_mutex);
  if (--open_handles[what] == 0) open_handles.erase(what);
  --all_held;
  return hipSuccess;
}
hipError_t hipStreamCreateWithFlags(hipStream_t* to, unsigned) { return make(to); }
hipError_t hipStreamCreateWithPriority(hipStream_t* to, unsigned, int) { return make(to); }
hipError_t hipStreamDestroy(hipStream_t what) { return give_back(what); }
hipError_t hipStreamSynchronize(hipStream_t) {
  if (waiting) waiting();
  return call();
}
hipError_t hipStreamQuery(hipStream_t) {
  if (waiting) waiting();
  hipError_t const called = call();
  return called == hipSuccess && busy ? hipErrorNotReady : called;
}
hipError_t hipStreamAddCallback(hipStream_t stream, void (*function)(hipStream_t, hipError_t, void*),
                                void* user, unsigned) {
  if (call() != hipSuccess) return hipErrorUnknown;
  function(stream, hipSuccess, user);
  return hipSuccess;
}
hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t, unsigned) { return call(); }
hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode) {
  return make(&stream->recording);
}
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* to) {
  *to = std::exchange(stream->recording, nullptr);
  return hipSuccess;
}
hipError_t hipEventCreateWithFlags(hipEvent_t* to, unsigned flags) {
  if (make(to) != hipSuccess) return hipErrorUnknown;
  (*to)->is_timed = (flags & hipEventDisableTiming) == 0;
  all_timed += (*to)->is_timed ? 1 : 0;
  return hipSuccess;
}
hipError_t hipEventDestroy(hipEvent_t what) { return give_back(what); }
hipError_t hipEventRecord(hipEvent_t, hipStream_t) { return call(); }
hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus* to) {
  bool const records = stream != nullptr && stream->recording != nullptr;
  *to = records ? hipStreamCaptureStatusActive : hipStreamCaptureStatusNone;
  return call();
}
hipError_t hipEventQuery(hipEvent_t) { return call(); }
hipError_t hipEventSynchronize(hipEvent_t) { return call(); }
hipError_t hipEventElapsedTime(float* to, hipEvent_t first, hipEvent_t last) {
  if (!first->is_timed || !last->is_timed) return hipErrorUnknown;
  *to = 1;
  return call();
}
hipError_t hipFuncGetAttributes(hipFuncAttributes* to, void const*) {
  *to = {};
  return call();
}
hipError_t hipLaunchKernel(void const*, dim3, dim3, void** parameters, std::size_t, hipStream_t stream) {
  if (call() != hipSuccess) return hipErrorUnknown;
  if (stream != nullptr && stream->recording != nullptr) {
    ++stream->recording->kernels;
  } else {
    ++all_launches;
    launched_on = device;
    if (launching) launching(parameters);
  }
  return hipSuccess;
}
hipError_t hipGraphCreate(hipGraph_t* to, unsigned) { return make(to); }
hipError_t hipGraphDestroy(hipGraph_t what) { return give_back(what); }
hipError_t hipGraphAddKernelNode(hipGraphNode_t* to, hipGraph_t graph, hipGraphNode_t const*, std::size_t,
                                 hipKernelNodeParams const*) {
  static FakeNode node;
  *to = &node;
  ++graph->kernels;
  return call();
}
hipError_t hipGraphAddChildGraphNode(hipGraphNode_t* to, hipGraph_t graph, hipGraphNode_t const*, std::size_t,
                                     hipGraph_t child) {
  static FakeNode node;
  *to = &node;
  graph->kernels += child->kernels;
  return call();
}
hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* to, hipGraph_t graph, unsigned long long) {
  if (make(to) != hipSuccess) return hipErrorUnknown;
  (*to)->kernels = graph->kernels;
  return hipSuccess;
}
hipError_t hipGraphExecDestroy(hipGraphExec_t what) { return give_back(what); }
hipError_t hipGraphLaunch(hipGraphExec_t what, hipStream_t) {
  if (call() != hipSuccess) return hipErrorUnknown;
  all_launches += what->kernels;
  return hipSuccess;
}
