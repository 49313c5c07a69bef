// Finds the libraries that are loaded at run time: MPI plugins and GPU libraries.
#include "base/plugin_file.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace hostless {
namespace {

namespace fs = std::filesystem;

// A plugin is code: only from files that nobody but root and this user could have put there.
bool trusted(fs::path const& file) {
  struct stat about {};
  if (stat(file.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return false;
  return (about.st_uid == 0 || about.st_uid == geteuid()) && (about.st_mode & S_IWOTH) == 0;
}

std::vector<fs::path> plugin_folders() {
  std::vector<fs::path> folders;
  if (char const* const named = std::getenv("HOSTLESS_PLUGIN_DIR")) folders.emplace_back(named);
  std::error_code ignored;
  std::vector<fs::path> starts{fs::read_symlink("/proc/self/exe", ignored)};
  Dl_info here{};
  if (dladdr(reinterpret_cast<void const*>(&find_plugin_file), &here) != 0 && here.dli_fname != nullptr) {
    starts.push_back(fs::absolute(here.dli_fname, ignored));
  }
  // Next to the program or library; in lib/hostless of its prefix (installed) or of a folder above (build
  // tree).
  for (fs::path const& start : starts) {
    fs::path folder = start.parent_path();
    folders.push_back(folder);
    folders.push_back(folder / "hostless");
    constexpr int levels = 4;
    for (int k = 0; k < levels && folder.has_relative_path(); ++k) {
      folders.push_back(folder / HOSTLESS_INSTALL_LIBDIR / "hostless");
      folders.push_back(folder / "lib" / "hostless");
      folder = folder.parent_path();
    }
  }
  return folders;
}

}  // namespace

fs::path find_plugin_file(std::string const& name) {
  for (fs::path const& folder : plugin_folders()) {
    if (trusted(folder / name)) return folder / name;
  }
  return {};
}

}  // namespace hostless
