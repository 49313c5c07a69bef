// Finds and loads the GPU libraries. This file is part of the main library and knows no GPU.
#include "transport/stream/gpu_files.hpp"

#include <dlfcn.h>

#include <filesystem>

#include "base/plugin_file.hpp"

namespace hostless::gpu {
namespace {

// Empty: it is loaded, and fits.
std::string load(std::filesystem::path const& path, GpuFile& found, bool& other_version) {
  found.path = path.string();
  void* const loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr)
    return found.path + " cannot be loaded: " + dlerror() + " (the vendor's run-time library is missing).";
  auto* const version = reinterpret_cast<InterfaceVersion*>(dlsym(loaded, interface_version_name));
  other_version = version == nullptr || version() != interface_version;
  if (other_version) {
    dlclose(loaded);
    return found.path +
           " belongs to another version of hostless (the two do not fit). Build and install both together.";
  }
  found.handle = loaded;
  return {};
}

GpuFile find(std::string const& vendor) {
  std::string const file = "libhostless_" + vendor + ".so";
  PluginFiles const plugins = find_plugin_files(file);
  GpuFile first{vendor, "", nullptr, plugins.refused};
  if (plugins.paths.empty() && first.problem.empty())
    first.problem =
        file +
        " was not found next to the program, in its prefix's lib/hostless or in HOSTLESS_PLUGIN_DIR (it "
        "holds the kernels). Build hostless where the vendor's compiler is installed.";
  for (auto const& path : plugins.paths) {  // an older installation may lie on the way
    GpuFile found{vendor, "", nullptr, ""};
    bool other_version = false;
    found.problem = load(path, found, other_version);
    if (!other_version) return found;
    if (first.path.empty()) first = found;
  }
  return first;
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
