// What the GPU library of tests has beside exchanges and transports.
#include "base/variable.hpp"
#include "device/memory.hpp"
#include "transport/stream/gpu_files.hpp"

namespace hostless::gpu {
bool guarded() { return is_one("HOSTLESS_GPU_GUARD"); }
}  // namespace hostless::gpu

extern "C" __attribute__((visibility("default"))) int hostless_gpu_interface_version() {
  return hostless::gpu::interface_version;
}
