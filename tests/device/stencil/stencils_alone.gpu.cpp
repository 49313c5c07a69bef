// Makes a GPU library of stencils alone, which compiles in minutes: to try their kernels on a machine with a
// GPU.
//   for f in tests/device/stencil/stencils_alone
//   src/stencil/gpu/{bound_stencil,cells,library,parts/*,texts/*}
//     src/transport/{memory/paths,peer/ping_pong}; do
//     nvcc -x cu -std=c++20 -O3 -arch=sm_90 --fmad=false -DHOSTLESS_GPU_COMPILER -Iinclude -Isrc -Xcompiler
//     -ffp-contract=off,-fPIC -c ...; done; nvcc -shared --cudart=static ... -o libhostless_cuda.so
// Its folder goes into HOSTLESS_PLUGIN_DIR.
#include "base/variable.hpp"
#include "device/memory.hpp"
#include "transport/stream/gpu_files.hpp"

namespace hostless::gpu {
bool guarded() { return is_one("HOSTLESS_GPU_GUARD"); }
}  // namespace hostless::gpu

extern "C" __attribute__((visibility("default"))) int hostless_gpu_interface_version() {
  return hostless::gpu::interface_version;
}
