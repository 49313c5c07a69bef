// Finds the libraries that are loaded at run time: MPI plugins and GPU libraries.
#include "base/plugin_file.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace hostless {
namespace {

namespace fs = std::filesystem;

/// The file that holds this code: a library, or the program, which is not what it was called (argv[0]).
fs::path own_file() {
  Dl_info here{};
  void* entry = nullptr;
  std::error_code ignored;
  if (dladdr1(reinterpret_cast<void const*>(&find_plugin_file), &here, &entry, RTLD_DL_LINKMAP) == 0)
    return {};
  auto const* const map = static_cast<link_map const*>(entry);
  if (map == nullptr || map->l_name == nullptr || map->l_name[0] == '\0')
    return fs::read_symlink("/proc/self/exe", ignored);
  return fs::absolute(map->l_name, ignored);
}

/// Why a file is not loaded; empty: it may be. `named`: its folder was, by the user.
std::string refusal(fs::path const& file, struct stat const& about, bool named) {
  if ((about.st_mode & S_IWOTH) != 0)
    return file.string() + " is left alone: anybody may write it (it is code). Run chmod o-w on it.";
  struct stat own {};
  bool const is_known = about.st_uid == 0 || about.st_uid == geteuid() ||
                        (stat(own_file().c_str(), &own) == 0 && own.st_uid == about.st_uid);
  if (named || is_known) return {};
  return file.string() + " is left alone: it belongs to user " + std::to_string(about.st_uid) +
         " (neither root, you, nor the owner of the program; it is code). Name its folder in "
         "HOSTLESS_PLUGIN_DIR if you trust it.";
}

struct Folder {
  fs::path path;
  bool named = false;
};

std::vector<Folder> plugin_folders() {
  std::vector<Folder> folders;
  std::error_code ignored;
  if (char const* const named = std::getenv("HOSTLESS_PLUGIN_DIR"); named != nullptr && named[0] != '\0')
    folders.push_back({fs::absolute(named, ignored), true});
  for (fs::path const& start : {fs::read_symlink("/proc/self/exe", ignored), own_file()}) {
    if (start.empty()) continue;
    fs::path folder = start.parent_path();
    folders.push_back({folder});
    folders.push_back({folder / "hostless"});
    constexpr int levels = 4;
    for (int k = 0; k < levels && folder.has_relative_path(); ++k) {
      folders.push_back({folder / HOSTLESS_INSTALL_LIBDIR / "hostless"});
      folders.push_back({folder / "lib" / "hostless"});
      folder = folder.parent_path();
    }
  }
  folders.push_back({HOSTLESS_INSTALLED_PLUGINS});  // programs elsewhere that hold this code
  return folders;
}

}  // namespace

PluginFile find_plugin_file(std::string const& name) {
  PluginFile found;
  for (Folder const& folder : plugin_folders()) {
    fs::path const file = folder.path / name;
    struct stat about {};
    if (stat(file.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
    std::string const why = refusal(file, about, folder.named);
    if (why.empty()) return {file, {}};
    if (found.refused.empty()) found.refused = why;
  }
  return found;
}

}  // namespace hostless
