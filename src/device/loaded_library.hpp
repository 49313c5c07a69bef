#pragma once
// A vendor's library whose functions are looked up by name, when somebody asks for what it does.

#include <dlfcn.h>

#include <string>
#include <utility>
#include <vector>

#include "hostless/base/error.hpp"

namespace hostless::gpu {

class LoadedLibrary {
 public:
  struct Words {
    std::string option;   ///< what needs it
    std::string library;  ///< its name
    std::string instead;  ///< other values of the option
    std::string install;  ///< what to install where a function is missing
  };
  /// Of one that carries between GPUs.
  static Words of_transport(std::string const& name, std::string const& library, std::string const& others,
                            std::string const& version) {
    std::string const instead = "--gpu-transport " + others;
    return {"GPU transport " + name, library, instead, "version " + version + ", or use " + instead};
  }
  /// Found as the loader finds libraries, else in one of the folders; stays loaded for good.
  ///
  /// Errors  environment  not found
  LoadedLibrary(char const* file, Words words, std::vector<std::string> const& folders = {})
      : file_(file), words_(std::move(words)) {
    library_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    std::string const problem = library_ == nullptr ? dlerror() : "";
    for (std::string const& folder : folders)
      if (library_ == nullptr && !folder.empty())
        library_ = dlopen((folder + file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) return;
    throw Error(ErrorCode::environment, words_.option + " without " + words_.library + " (" + problem +
                                            "). Name its folder in LD_LIBRARY_PATH, or use " +
                                            words_.instead + ".");
  }
  /// False, and null, where this version has no such function.
  template <class Function>
  bool find(Function& function, char const* name) const {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    return function != nullptr;
  }
  /// Errors  environment  this version has no such function
  template <class Function>
  void need(Function& function, char const* name) const {
    if (find(function, name)) return;
    throw Error(ErrorCode::environment, words_.option + " with this " + words_.library + " (" + file_ +
                                            " has no " + name + "). Install " + words_.install + ".");
  }

  /// All of them: pairs of a member of what holds the functions, and a name.
  template <class Functions, class... Function>
  void need_all(Functions& functions, std::pair<Function Functions::*, char const*> const&... named) const {
    (need(functions.*named.first, named.second), ...);
  }

  /// Where the file lies that has a function of such a library; empty: nobody knows.
  template <class Function>
  static std::string path_of(Function* function) {
    Dl_info found{};
    bool const known = dladdr(reinterpret_cast<void*>(function), &found) != 0 && found.dli_fname != nullptr;
    return known ? found.dli_fname : "";
  }

 private:
  std::string file_;
  Words words_;
  void* library_ = nullptr;
};

}  // namespace hostless::gpu
