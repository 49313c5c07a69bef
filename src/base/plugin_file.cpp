// Finds the libraries that are loaded at run time: MPI plugins and GPU libraries.
#include "base/plugin_file.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>
#include <vector>

namespace hostless {
namespace {

namespace fs = std::filesystem;

/// The file that holds this code: a library, or the program, which is not what it was called (argv[0]).
fs::path own_file() {
  Dl_info here{};
  void* entry = nullptr;
  std::error_code ignored;
  if (dladdr1(reinterpret_cast<void const*>(&find_plugin_files), &here, &entry, RTLD_DL_LINKMAP) == 0)
    return {};
  auto const* const map = static_cast<link_map const*>(entry);
  if (map == nullptr || map->l_name == nullptr || map->l_name[0] == '\0')
    return fs::read_symlink("/proc/self/exe", ignored);
  return fs::absolute(map->l_name, ignored);
}

/// Users whose code this process runs anyway.
bool is_trusted(uid_t user) {
  struct stat own {};
  return user == 0 || user == geteuid() || (stat(own_file().c_str(), &own) == 0 && own.st_uid == user);
}

std::string advice(fs::path const& file) {
  return "Name " + file.parent_path().string() + " in HOSTLESS_PLUGIN_DIR if you trust it.";
}

/// Why somebody else could put another file in the place of this one; empty: nobody can.
std::string exchangeable(fs::path const& file) {
  std::error_code ignored;
  fs::path const program = fs::canonical(own_file(), ignored);
  for (fs::path folder = file.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    if (std::mismatch(folder.begin(), folder.end(), program.begin(), program.end()).first == folder.end())
      return {};  // and all above it
    struct stat about {};
    if (stat(folder.c_str(), &about) != 0) return "its folder " + folder.string() + " cannot be looked at";
    if (!is_trusted(about.st_uid))
      return "its folder " + folder.string() + " belongs to user " + std::to_string(about.st_uid);
    bool const others_keep_out = (about.st_mode & S_ISVTX) != 0 && folder != file.parent_path();
    if ((about.st_mode & S_IWOTH) != 0 && !others_keep_out)
      return "anybody may write its folder " + folder.string();
  }
  return {};
}

/// Why a file is not loaded; empty: it may be. `named`: its folder was, by the user.
std::string refusal(fs::path const& file, struct stat const& about, bool named) {
  std::string const left = file.string() + " is left alone: ";
  if ((about.st_mode & S_IWOTH) != 0) return left + "anybody may write it (it is code). Run chmod o-w on it.";
  if (named) return {};
  if (!is_trusted(about.st_uid))
    return left + "it belongs to user " + std::to_string(about.st_uid) +
           " (neither root, you, nor the owner of the program; it is code). " + advice(file);
  std::string const why = exchangeable(file);
  return why.empty() ? why : left + why + " (it is code, and could be exchanged). " + advice(file);
}

struct Folder {
  fs::path path;
  bool named = false;
};

/// Where the loader looks for this program's libraries: its run path, which a package's target or pkg-config
/// file gives.
std::vector<Folder> folders_of_loader() {
  std::vector<Folder> folders;
  void* const program = dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo sizes{};
  if (program == nullptr || dlinfo(program, RTLD_DI_SERINFOSIZE, &sizes) != 0) return folders;
  std::vector<std::max_align_t> memory(sizes.dls_size / sizeof(std::max_align_t) + 1);
  auto* const all = reinterpret_cast<Dl_serinfo*>(memory.data());
  if (dlinfo(program, RTLD_DI_SERINFOSIZE, all) == 0 && dlinfo(program, RTLD_DI_SERINFO, all) == 0)
    for (unsigned k = 0; k < all->dls_cnt; ++k)
      if (fs::path const folder = all->dls_serpath[k].dls_name; folder.is_absolute())
        folders.push_back({folder});
  dlclose(program);
  return folders;
}

std::vector<Folder> plugin_folders() {
  std::vector<Folder> folders;
  std::error_code ignored;
  if (char const* const named = secure_getenv("HOSTLESS_PLUGIN_DIR"); named != nullptr && named[0] != '\0')
    folders.push_back({fs::absolute(named, ignored), true});
  for (fs::path const& start : {own_file(), fs::read_symlink("/proc/self/exe", ignored)}) {
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
  // Programs elsewhere that hold this code.
  for (Folder const& folder : folders_of_loader()) folders.push_back(folder);
  // As they were linked without a run path; a wheel has no such place.
  if (fs::path const installed = HOSTLESS_INSTALLED_PLUGINS; !installed.empty())
    folders.push_back({installed});
  return folders;
}

}  // namespace

PluginFiles find_plugin_files(std::string const& name) {
  PluginFiles found;
  for (Folder const& folder : plugin_folders()) {
    std::error_code unresolved;
    fs::path const file = fs::canonical(folder.path / name, unresolved);
    struct stat about {};
    if (unresolved || stat(file.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
    if (std::find(found.paths.begin(), found.paths.end(), file) != found.paths.end()) continue;
    std::string const why = refusal(file, about, folder.named);
    if (why.empty()) {
      found.paths.push_back(file);
    } else if (found.refused.empty()) {
      found.refused = why;
    }
  }
  return found;
}

std::string not_found(PluginKind const& kind, PluginFiles const& files) {
  if (!files.refused.empty()) return files.refused;
  return kind.file +
         " was not found next to the program, in its prefix's lib/hostless or in HOSTLESS_PLUGIN_DIR (" +
         kind.use;
}

LoadedPlugin load_plugin_file(PluginKind const& kind, fs::path const& path, int scope) {
  LoadedPlugin loaded{path.string(), dlopen(path.c_str(), RTLD_NOW | scope), {}};
  if (loaded.library == nullptr) {
    loaded.problem = loaded.path + " cannot be loaded: " + dlerror() + " (" + kind.cause;
    return loaded;
  }
  auto* const version = reinterpret_cast<int (*)()>(dlsym(loaded.library, kind.version_symbol));
  loaded.other_version = version == nullptr || version() != kind.version;
  if (loaded.other_version) {
    dlclose(loaded.library);
    loaded.library = nullptr;
    loaded.problem =
        loaded.path +
        " belongs to another version of hostless (the two do not fit). Build and install both together.";
  }
  return loaded;
}

LoadedPlugin load_plugin(PluginKind const& kind, int scope) {
  PluginFiles const files = find_plugin_files(kind.file);
  LoadedPlugin first;
  if (files.paths.empty()) first.problem = not_found(kind, files);
  for (fs::path const& path : files.paths) {
    LoadedPlugin loaded = load_plugin_file(kind, path, scope);
    if (!loaded.other_version) return loaded;
    if (first.path.empty()) first = std::move(loaded);
  }
  return first;
}

}  // namespace hostless
