// Makes a GPU library of stencils alone, which compiles in minutes (build_alone.sh): to try their kernels on
// a machine with a GPU.
#include "base/variable.hpp"
#include "device/memory.hpp"
#include "transport/stream/gpu_files.hpp"

namespace hostless::gpu {
bool guarded() { return is_one("HOSTLESS_GPU_GUARD"); }
}  // namespace hostless::gpu

extern "C" __attribute__((visibility("default"))) int hostless_gpu_interface_version() {
  return hostless::gpu::interface_version;
}
