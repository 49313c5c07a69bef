// Finds and loads the GPU libraries. This file is part of the main library and knows no GPU.
#include "solve/gpu_loader.hpp"

#include <dlfcn.h>

#include <filesystem>

#include "base/plugin_file.hpp"
#include "hostless/base/error.hpp"

namespace hostless::gpu {
namespace {

template <class Function>
Function* entry(void* library, char const* symbol) {
  return reinterpret_cast<Function*>(dlsym(library, symbol));
}

// Empty: it is loaded, and fits.
std::string load(std::filesystem::path const& path, Found& found, bool& other_version) {
  found.path = path.string();
  void* const loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr)
    return found.path + " cannot be loaded: " + dlerror() + " (the vendor's run-time library is missing).";
  auto* const version = entry<InterfaceVersion>(loaded, interface_version_name);
  auto* const open = entry<Open>(loaded, open_name);
  other_version = version == nullptr || open == nullptr || version() != interface_version;
  if (other_version) {
    dlclose(loaded);
    return found.path +
           " belongs to another version of hostless (the two do not fit). Build and install both together.";
  }
  found.library = open();
  if (found.library->devices() != 0) return {};
  return found.library->describe() + ": no GPU is visible (no driver, or all are hidden).";
}

Found find(std::string const& vendor) {
  std::string const file = "libhostless_" + vendor + ".so";
  PluginFiles const plugins = find_plugin_files(file);
  Found first{vendor, "", nullptr, plugins.refused};
  if (plugins.paths.empty() && first.problem.empty())
    first.problem =
        file +
        " was not found next to the program, in its prefix's lib/hostless or in HOSTLESS_PLUGIN_DIR (it "
        "holds the kernels). Build hostless where the vendor's compiler is installed.";
  for (auto const& path : plugins.paths) {  // an older installation may lie on the way
    Found found{vendor, "", nullptr, ""};
    bool other_version = false;
    found.problem = load(path, found, other_version);
    if (!other_version) return found;
    if (first.path.empty()) first = found;
  }
  return first;
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
