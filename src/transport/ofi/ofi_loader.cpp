// Finds and loads the plugin of libfabric. This file is part of the main library and knows no libfabric.
#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "base/plugin_file.hpp"
#include "hostless/transport/ofi.hpp"
#include "transport/ofi/ofi_plugin.hpp"

namespace hostless {
namespace {

constexpr char const* plugin_name = "libhostless_ofi.so";

template <class Function>
Function* ofi_entry(void* library, char const* symbol) {
  return reinterpret_cast<Function*>(dlsym(library, symbol));
}

struct LoadedPlugin {
  void* library = nullptr;
  std::string path, problem;
};

// The first file that fits; it stays in the process.
LoadedPlugin load_plugin() {
  PluginFiles const files = find_plugin_files(plugin_name);
  LoadedPlugin loaded;
  if (files.paths.empty())
    loaded.problem =
        !files.refused.empty()
            ? files.refused
            : std::string(plugin_name) +
                  " was not found next to the program, in its prefix's lib/hostless or in "
                  "HOSTLESS_PLUGIN_DIR (queues of the type ofi are carried by it). Build hostless with "
                  "libfabric-dev installed.";
  for (std::filesystem::path const& path : files.paths) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      if (loaded.problem.empty())
        loaded.problem = path.string() + " cannot be loaded: " + dlerror() +
                         " (libfabric is missing or another one). Install the Debian package libfabric1.";
      continue;
    }
    auto* const version =
        ofi_entry<ofi_plugin::InterfaceVersion>(library, ofi_plugin::interface_version_name);
    if (version != nullptr && version() == ofi_plugin::interface_version) return {library, path.string(), ""};
    dlclose(library);
    if (loaded.problem.empty())
      loaded.problem = path.string() +
                       " belongs to another version of hostless (the two do not fit). Build and install both "
                       "together.";
  }
  return loaded;
}

}  // namespace

OfiPlugin find_ofi_plugin() {
  LoadedPlugin const loaded = load_plugin();
  if (loaded.library == nullptr) return {"", "", loaded.problem};
  char text[1024] = "";
  ofi_entry<ofi_plugin::Describe>(loaded.library, ofi_plugin::describe_name)(text, sizeof text);
  std::string const said = text + 1;
  return text[0] == '+' ? OfiPlugin{loaded.path, said, ""} : OfiPlugin{loaded.path, "", said};
}

std::unique_ptr<Transport> open_ofi_transport(Transport& below) {
  LoadedPlugin loaded;
  below.group().together([&] {
    if (!below.capabilities().processes_as_ranks)
      throw Error(
          ErrorCode::usage,
          "libfabric between ranks that are threads (they load and store in one memory). Use a queue of "
          "the type threads, or ranks that are processes.");
    loaded = load_plugin();
    if (loaded.library == nullptr) throw Error(ErrorCode::environment, loaded.problem);
  });
  return std::unique_ptr<Transport>(
      ofi_entry<ofi_plugin::Open>(loaded.library, ofi_plugin::open_name)(&below));
}

}  // namespace hostless
