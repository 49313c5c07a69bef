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

/// What is loaded at run time, and the words for where it is not.
struct PluginKind {
  std::string file;
  char const* version_symbol;  ///< an int() that says of which version the file is
  int version;
  std::string use;    ///< of a sentence on a file that is not found: what it is for, and what helps
  std::string cause;  ///< of one on a file that cannot be loaded
};
struct LoadedPlugin {
  std::string path;            ///< empty: there is no file
  void* library = nullptr;     ///< of the loader, kept as long as the process lives; null: it cannot be used
  std::string problem;         ///< why; empty: it is loaded, and of this version
  bool other_version = false;  ///< an older installation lies on the way: the next file may fit
};
/// Why none of no files can be loaded.
std::string not_found(PluginKind const& kind, PluginFiles const& files);
/// scope  RTLD_LOCAL, or RTLD_GLOBAL where what it loads looks for its symbols
LoadedPlugin load_plugin_file(PluginKind const& kind, std::filesystem::path const& path, int scope);
/// The first of this version; where there is none, what the first one that was found lacks.
LoadedPlugin load_plugin(PluginKind const& kind, int scope);

}  // namespace hostless
