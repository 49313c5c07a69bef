// Of a library that plays exchanges and nothing else.
#include "transport/stream/gpu_files.hpp"

extern "C" __attribute__((visibility("default"))) int hostless_gpu_interface_version() {
  return hostless::gpu::interface_version;
}
