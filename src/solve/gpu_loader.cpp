// Finds and loads the GPU libraries. This file is part of the main library and knows no GPU.
#include "solve/gpu_loader.hpp"

#include <dlfcn.h>

#include "base/plugin_file.hpp"
#include "hostless/base/error.hpp"

namespace hostless::gpu {
namespace {

template <class Function>
Function* entry(void* library, char const* symbol) {
  return reinterpret_cast<Function*>(dlsym(library, symbol));
}

Found find(std::string const& vendor) {
  std::string const file = "libhostless_" + vendor + ".so";
  PluginFile const plugin = find_plugin_file(file);
  Found found{vendor, plugin.path.string(), nullptr, plugin.refused};
  if (!found.problem.empty()) return found;
  if (found.path.empty()) {
    found.problem =
        file +
        " was not found next to the program, in its prefix's lib/hostless or in HOSTLESS_PLUGIN_DIR (it "
        "holds the kernels). Build hostless where the vendor's compiler is installed.";
    return found;
  }
  void* const loaded = dlopen(found.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    found.problem =
        found.path + " cannot be loaded: " + dlerror() + " (the vendor's run-time library is missing).";
    return found;
  }
  auto* const version = entry<InterfaceVersion>(loaded, interface_version_name);
  auto* const open = entry<Open>(loaded, open_name);
  if (version == nullptr || open == nullptr || version() != interface_version) {
    found.problem =
        found.path +
        " belongs to another version of hostless (the two do not fit). Build and install both together.";
    return found;
  }
  found.library = open();
  if (found.library->devices() == 0)
    found.problem = found.library->describe() + ": no GPU is visible (no driver, or all are hidden).";
  return found;
}

}  // namespace

std::vector<Found> const& libraries() {
  static std::vector<Found> const all = {find("cuda"), find("hip")};
  return all;
}

Library& library() {
  std::string problems;
  for (Found const& found : libraries()) {
    if (found.problem.empty()) return *found.library;
    problems += "\n  " + found.vendor + ": " + found.problem;
  }
  throw Error(ErrorCode::environment,
              "no GPU can be used (a GPU run was asked for). Leave out --gpus." + problems);
}

}  // namespace hostless::gpu
