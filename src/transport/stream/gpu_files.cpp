// Finds and loads the GPU libraries. This file is part of the main library and knows no GPU.
#include "transport/stream/gpu_files.hpp"

#include <dlfcn.h>

#include <utility>

#include "base/plugin_file.hpp"

namespace hostless::gpu {
namespace {

GpuFile find(std::string const& vendor) {
  LoadedPlugin loaded =
      load_plugin({"libhostless_" + vendor + ".so", interface_version_name, interface_version,
                   "it holds the kernels). Build hostless where the vendor's compiler is installed.",
                   "the vendor's run-time library is missing)."},
                  RTLD_LOCAL);
  return {vendor, std::move(loaded.path), loaded.library, std::move(loaded.problem)};
}

}  // namespace

std::vector<GpuFile> const& gpu_files() {
  static std::vector<GpuFile> const all = {find("cuda"), find("hip")};
  return all;
}

void* function_of(GpuFile const& file, char const* name) {
  return file.handle == nullptr ? nullptr : dlsym(file.handle, name);
}

}  // namespace hostless::gpu
