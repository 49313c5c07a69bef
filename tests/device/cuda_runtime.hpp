#pragma once
// What a program of somebody else does with a GPU: memory, streams, graphs, by the vendor's runtime as it is
// installed. These programs are compiled without it.

#include <dlfcn.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace hostless::test {

class CudaRuntime {
 public:
  using Status = int;
  using Stream = void*;
  using HostFunction = void (*)(void*);
  static constexpr int to_gpu = 1, to_host = 2, relaxed = 2, not_ready = 600, non_blocking = 1;

  /// Null where it is not installed.
  static CudaRuntime const* find() {
    static CudaRuntime const one;
    return one.library_ == nullptr ? nullptr : &one;
  }
  static void check(Status status, char const* what) {
    if (status != 0) throw std::runtime_error(std::string(what) + " failed: " + std::to_string(status));
  }

  Status (*use)(int device) = nullptr;
  Status (*allocate)(void**, std::size_t) = nullptr;
  Status (*release)(void*) = nullptr;
  Status (*copy)(void* to, void const* from, std::size_t, int kind, Stream) = nullptr;
  Status (*pin)(void**, std::size_t, unsigned) = nullptr;
  Status (*unpin)(void*) = nullptr;
  Status (*make_stream)(Stream*, unsigned) = nullptr;
  Status (*end_stream)(Stream) = nullptr;
  Status (*synchronize)(Stream) = nullptr;
  Status (*query)(Stream) = nullptr;
  Status (*call_host)(Stream, HostFunction, void*) = nullptr;
  Status (*begin_capture)(Stream, int mode) = nullptr;
  Status (*end_capture)(Stream, void** graph) = nullptr;
  Status (*instantiate)(void** ready, void* graph, unsigned long long flags) = nullptr;
  Status (*launch)(void* ready, Stream) = nullptr;
  Status (*end_ready)(void*) = nullptr;
  Status (*end_graph)(void*) = nullptr;

 private:
  CudaRuntime() {
    for (char const* file : {"libcudart.so", "libcudart.so.13", "libcudart.so.12"})
      if (library_ == nullptr) library_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    find_function(use, "cudaSetDevice");
    find_function(allocate, "cudaMalloc");
    find_function(release, "cudaFree");
    find_function(copy, "cudaMemcpyAsync");
    find_function(pin, "cudaHostAlloc");
    find_function(unpin, "cudaFreeHost");
    find_function(make_stream, "cudaStreamCreateWithFlags");
    find_function(end_stream, "cudaStreamDestroy");
    find_function(synchronize, "cudaStreamSynchronize");
    find_function(query, "cudaStreamQuery");
    find_function(call_host, "cudaLaunchHostFunc");
    find_function(begin_capture, "cudaStreamBeginCapture");
    find_function(end_capture, "cudaStreamEndCapture");
    find_function(instantiate, "cudaGraphInstantiateWithFlags");
    find_function(launch, "cudaGraphLaunch");
    find_function(end_ready, "cudaGraphExecDestroy");
    find_function(end_graph, "cudaGraphDestroy");
  }
  template <class Function>
  void find_function(Function& function, char const* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) throw std::runtime_error(std::string("the CUDA runtime has no ") + name);
  }
  void* library_ = nullptr;
};

/// Bytes on a GPU and the same many in pinned memory.
class DeviceBytes {
 public:
  DeviceBytes(CudaRuntime const& cuda, std::size_t bytes) : cuda_(cuda), bytes_(bytes) {
    CudaRuntime::check(cuda.allocate(&device_, bytes + 1), "cudaMalloc");
    void* host = nullptr;
    CudaRuntime::check(cuda.pin(&host, bytes + 1, 0), "cudaHostAlloc");
    host_ = static_cast<std::byte*>(host);
  }
  DeviceBytes(DeviceBytes&& other) noexcept
      : cuda_(other.cuda_), device_(other.device_), host_(other.host_), bytes_(other.bytes_) {
    other.device_ = nullptr;
    other.host_ = nullptr;
  }
  DeviceBytes& operator=(DeviceBytes&&) = delete;
  ~DeviceBytes() {
    if (device_ != nullptr) static_cast<void>(cuda_.release(device_));
    if (host_ != nullptr) static_cast<void>(cuda_.unpin(host_));
  }
  std::byte* device() const { return static_cast<std::byte*>(device_); }
  std::byte* host() const { return host_; }
  std::size_t size() const { return bytes_; }
  void bring(CudaRuntime::Stream stream) const {
    CudaRuntime::check(cuda_.copy(device_, host_, bytes_, CudaRuntime::to_gpu, stream), "cudaMemcpyAsync");
  }
  void fetch(CudaRuntime::Stream stream) const {
    CudaRuntime::check(cuda_.copy(host_, device_, bytes_, CudaRuntime::to_host, stream), "cudaMemcpyAsync");
  }

 private:
  CudaRuntime const& cuda_;
  void* device_ = nullptr;
  std::byte* host_ = nullptr;
  std::size_t bytes_;
};

}  // namespace hostless::test
