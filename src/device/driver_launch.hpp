#pragma once
// CUDA alone, a part of runtime.hpp: launches by the driver instead of the runtime, which takes longer, and
// longer still where several threads launch. On a stream whose kernels are short the processor decides.

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

namespace hostless::gpu {

/// A kernel as the driver knows it on the GPU in use: the runtime looks it up at every launch, this at a
/// thread's first.
inline HOSTLESS_GPU(Error_t) function_of_driver(void const* kernel, HOSTLESS_GPU(Function_t) & function) {
  struct Known {
    void const* kernel = nullptr;
    int device = 0;
    HOSTLESS_GPU(Function_t) function = nullptr;
  };
  constexpr std::size_t kept = 32, apart = 16;
  static thread_local Known all[kept];
  int device = 0;
  if (auto const code = HOSTLESS_GPU(GetDevice)(&device); code != HOSTLESS_GPU(Success)) return code;
  Known& one = all[(reinterpret_cast<std::uintptr_t>(kernel) / apart + static_cast<unsigned>(device)) % kept];
  if (one.kernel != kernel || one.device != device) {
    Known found{kernel, device, nullptr};
    if (auto const code = HOSTLESS_GPU(GetFuncBySymbol)(&found.function, kernel);
        code != HOSTLESS_GPU(Success))
      return code;
    one = found;
  }
  function = one.function;
  return HOSTLESS_GPU(Success);
}
using LaunchByDriver = CUresult(CUlaunchConfig const*, CUfunction, void**, void**);
/// Null: this driver has none.
inline LaunchByDriver* launch_by_driver() {
  static LaunchByDriver* const launch = [] {
    void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);  // the runtime has loaded it
    return driver == nullptr ? nullptr : reinterpret_cast<LaunchByDriver*>(dlsym(driver, "cuLaunchKernelEx"));
  }();
  return launch;
}
/// Programmatic dependent launch; by the runtime where the driver's own is not found.
inline HOSTLESS_GPU(Error_t) launch_early(void const* kernel, dim3 blocks, dim3 threads, void** parameters,
                                          HOSTLESS_GPU(Stream_t) stream) {
  LaunchByDriver* const launch = launch_by_driver();
  if (launch == nullptr) {
    HOSTLESS_GPU(LaunchAttribute) early{};
    early.id = HOSTLESS_GPU(LaunchAttributeProgrammaticStreamSerialization);
    early.val.programmaticStreamSerializationAllowed = 1;
    HOSTLESS_GPU(LaunchConfig_t) const config{blocks, threads, 0, stream, &early, 1};
    return HOSTLESS_GPU(LaunchKernelExC)(&config, kernel, parameters);
  }
  HOSTLESS_GPU(Function_t) function = nullptr;
  if (auto const code = function_of_driver(kernel, function); code != HOSTLESS_GPU(Success)) return code;
  CUlaunchAttribute early{};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig const config{blocks.x,  blocks.y, blocks.z, threads.x, threads.y,
                              threads.z, 0,        stream,   &early,    1};
  // The vendor numbers errors of the driver and of the runtime alike.
  return static_cast<HOSTLESS_GPU(Error_t)>(launch(&config, function, parameters, nullptr));
}

}  // namespace hostless::gpu
