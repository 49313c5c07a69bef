// Finds and loads the plugin of libfabric. This file is part of the main library and knows no libfabric.
#include <dlfcn.h>

#include <string>

#include "base/plugin_file.hpp"
#include "hostless/transport/ofi.hpp"
#include "transport/ofi/ofi_plugin.hpp"

namespace hostless {
namespace {

template <class Function>
Function* ofi_entry(void* library, char const* symbol) {
  return reinterpret_cast<Function*>(dlsym(library, symbol));
}

LoadedPlugin load_ofi() {
  return load_plugin(
      {"libhostless_ofi.so", ofi_plugin::interface_version_name, ofi_plugin::interface_version,
       "queues of the type ofi are carried by it). Build hostless with libfabric-dev installed.",
       "libfabric is missing or another one). Install the Debian package libfabric1."},
      RTLD_LOCAL);
}

}  // namespace

OfiPlugin find_ofi_plugin() {
  LoadedPlugin const loaded = load_ofi();
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
    loaded = load_ofi();
    if (loaded.library == nullptr) throw Error(ErrorCode::environment, loaded.problem);
  });
  return std::unique_ptr<Transport>(
      ofi_entry<ofi_plugin::Open>(loaded.library, ofi_plugin::open_name)(&below));
}

}  // namespace hostless
