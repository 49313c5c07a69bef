#pragma once
// Where kernels and a vendor's calls go: onto a stream, or into what is recorded.

#include <functional>

#include "device/block.hpp"
#include "device/memory.hpp"

namespace hostless::gpu {

struct KernelLaunch {
  void const* kernel;
  int blocks;
  void** parameters;
  bool decides;  ///< one of its threads changes the state of a solve
};

/// Kernels are loaded when they are first asked for, which may wait for those that run.
inline void load_kernel(void const* kernel) {
  HOSTLESS_GPU(FuncAttributes) attributes{};
  check(HOSTLESS_GPU(FuncGetAttributes)(&attributes, kernel), "loading a kernel");
}

class StreamQueue {
 public:
  virtual ~StreamQueue() = default;
  /// block_threads threads a block.
  virtual void launch(KernelLaunch const& launch) = 0;
  /// use(stream) queues what a library of the vendor launches; it may be executed while the stream records.
  virtual void call(std::function<void(HOSTLESS_GPU(Stream_t))> const& use) = 0;
};

/// What is launched at once.
class DirectQueue final : public StreamQueue {
 public:
  explicit DirectQueue(HOSTLESS_GPU(Stream_t) stream) : stream_(stream) {}
  explicit DirectQueue(Stream const& stream) : stream_(stream.get()) {}
  void launch(KernelLaunch const& launch) override {
    check(HOSTLESS_GPU(LaunchKernel)(launch.kernel, dim3(static_cast<unsigned>(launch.blocks)),
                                     dim3(block_threads), launch.parameters, 0, stream_),
          "launching a kernel");
  }
  void call(std::function<void(HOSTLESS_GPU(Stream_t))> const& use) override { use(stream_); }

 private:
  HOSTLESS_GPU(Stream_t) stream_;
};

/// The values become the kernel's parameters.
template <class... Values>
void launch(StreamQueue& queue, void const* kernel, int blocks, Values... values) {
  void* parameters[] = {&values...};
  queue.launch({kernel, blocks, parameters, false});
}

}  // namespace hostless::gpu
