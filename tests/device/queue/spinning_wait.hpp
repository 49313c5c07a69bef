#pragma once
// What a program may call of the vendor's while a kernel waits for a message.

#include <dlfcn.h>

#include <functional>
#include <string>
#include <vector>

#include "cuda_runtime.hpp"
#include "queue/gpu/message_library.hpp"

namespace hostless::test {

class Meanwhile {
 public:
  struct Call {
    char const* name;
    std::function<void()> work;
    bool waits_for_kernels = false;  ///< of its GPU, all of them: seen so (docs/howto/queue.md)
  };

  Meanwhile() : cuda_(CudaRuntime::find()) {
    if (gpu::message_library().vendor() != "cuda") problem_ = "the GPU is not one of CUDA's.";
    if (cuda_ == nullptr) problem_ = "the CUDA runtime is not installed (calls while a wait spins).";
    if (!problem_.empty()) return;
    use_first();
    CudaRuntime::check(cuda_->allocate(&to_free_, 1 << 20), "cudaMalloc");
    CudaRuntime::check(cuda_->pin(&to_unpin_, 1 << 20, 0), "cudaHostAlloc");
    driver_ = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    auto const keep = [](CudaRuntime::Status status, char const* what) { CudaRuntime::check(status, what); };
    calls_ = {
        {"cudaMalloc of 1 MB",
         [=, this] {
           void* memory = nullptr;
           keep(cuda_->allocate(&memory, 1 << 20), "cudaMalloc");
         }},
        {"cudaMalloc of 1 GB",
         [=, this] {
           void* memory = nullptr;
           keep(cuda_->allocate(&memory, std::size_t{1} << 30), "cudaMalloc");
         }},
        {"cudaFree", [=, this] { keep(cuda_->release(to_free_), "cudaFree"); }, true},
        {"cudaHostAlloc",
         [=, this] {
           void* memory = nullptr;
           keep(cuda_->pin(&memory, 1 << 20, 0), "cudaHostAlloc");
         }},
        {"cudaFreeHost", [=, this] { keep(cuda_->unpin(to_unpin_), "cudaFreeHost"); }, true},
        {"cudaStreamCreate and cudaStreamDestroy",
         [=, this] {
           CudaRuntime::Stream stream = nullptr;
           keep(cuda_->make_stream(&stream, CudaRuntime::non_blocking), "cudaStreamCreate");
           keep(cuda_->end_stream(stream), "cudaStreamDestroy");
         }},
        {"a copy from pageable memory on the default stream",
         [=, this] {
           void* memory = nullptr;
           std::vector<char> pageable(1 << 20);
           keep(cuda_->allocate(&memory, pageable.size()), "cudaMalloc");
           keep(cuda_->copy(memory, pageable.data(), pageable.size(), CudaRuntime::to_gpu, nullptr),
                "cudaMemcpy");
           keep(cuda_->synchronize(nullptr), "cudaStreamSynchronize");
         }},
        {"the first kernel of another module", [this] { launch_another(); }, true},
    };
  }
  std::string const& problem() const { return problem_; }
  std::vector<Call> const& calls() const { return calls_; }
  void on_gpu_0(Call const& call) const {
    use_first();
    call.work();
  }

 private:
  void use_first() const { CudaRuntime::check(cuda_->use(0), "cudaSetDevice"); }
  template <class Function>
  Function driver(char const* name) const {
    return reinterpret_cast<Function>(dlsym(driver_, name));
  }
  // A kernel that does nothing, loaded from its text.
  void launch_another() const {
    static constexpr char const* text =
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n";
    auto const load = driver<int (*)(void**, void const*)>("cuModuleLoadData");
    auto const find = driver<int (*)(void**, void*, char const*)>("cuModuleGetFunction");
    auto const launch = driver<int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                       unsigned, void*, void**, void**)>("cuLaunchKernel");
    void *module = nullptr, *function = nullptr;
    CudaRuntime::check(load(&module, text), "cuModuleLoadData");
    CudaRuntime::check(find(&function, module, "nothing"), "cuModuleGetFunction");
    CudaRuntime::Stream stream = nullptr;
    CudaRuntime::check(cuda_->make_stream(&stream, CudaRuntime::non_blocking), "cudaStreamCreate");
    CudaRuntime::check(launch(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), "cuLaunchKernel");
    CudaRuntime::check(cuda_->synchronize(stream), "cudaStreamSynchronize");
  }

  CudaRuntime const* cuda_;
  void *driver_ = nullptr, *to_free_ = nullptr, *to_unpin_ = nullptr;
  std::string problem_;
  std::vector<Call> calls_;
};

}  // namespace hostless::test
