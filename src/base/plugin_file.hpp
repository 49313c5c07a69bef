#pragma once

#include <filesystem>
#include <string>

namespace hostless {

struct PluginFile {
  std::filesystem::path path;  ///< empty: there is none
  std::string refused;         ///< then: the first of that name that is not loaded, and why; else empty
};

/// The file of that name in HOSTLESS_PLUGIN_DIR, next to the program or library, in lib/hostless of its
/// prefix, of a folder above (build tree) or of the prefix that this was configured with. A plugin is code:
/// one that anybody may write is refused, and one that belongs to neither root, this user nor the owner of
/// the program, unless HOSTLESS_PLUGIN_DIR names its folder.
PluginFile find_plugin_file(std::string const& name);

}  // namespace hostless
