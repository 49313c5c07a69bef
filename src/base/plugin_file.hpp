#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hostless {

struct PluginFiles {
  std::vector<std::filesystem::path> paths;  ///< that may be loaded, best first, links resolved
  std::string refused;                       ///< the first of that name that may not, and why; or empty
};

/// The files of that name in HOSTLESS_PLUGIN_DIR, next to the library or program that holds this code, in
/// lib/hostless of its prefix or of a folder above (build tree), the same of the program that runs, where the
/// loader looks for that program's libraries (its run path), and in the prefix that this was configured with.
///
/// A plugin is code. One is left alone that anybody may write, or that somebody else may put in its place:
/// file and folders must belong to root, this user or the owner of the program, and folders must not be open
/// to everybody, but for those that the program itself lies in: whoever may change these may change the
/// program. In the folder that HOSTLESS_PLUGIN_DIR names (which a set-user-ID program does not read) it
/// matters alone that not everybody may write the file. What a group may write is its members' business.
PluginFiles find_plugin_files(std::string const& name);

}  // namespace hostless
