// Finds and loads the MPI plugins. This file is part of the main library and knows no MPI.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <iostream>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/child.hpp"
#include "base/plugin_file.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/transport/mpi.hpp"
#include "transport/mpi/mpi_plugin.hpp"

#ifdef HOSTLESS_COVERAGE
extern "C" void __gcov_dump();
#endif

namespace hostless {
namespace {

namespace fs = std::filesystem;

char const* text_of(char const* variable) {
  char const* text = std::getenv(variable);
  return text == nullptr ? "" : text;
}
bool has(char const* variable) { return std::getenv(variable) != nullptr; }

std::string package_of(MpiVendor vendor) {
  return vendor == MpiVendor::openmpi ? "openmpi-bin and libopenmpi3" : "mpich and libmpich12";
}

PluginKind kind_of(MpiVendor vendor) {
  return {
      std::string("libhostless_mpi_") + name(vendor) + ".so", mpi_plugin::interface_version_name,
      mpi_plugin::interface_version,
      std::string("it carries messages over MPI). Name its folder (PREFIX/lib/hostless) in "
                  "HOSTLESS_PLUGIN_DIR, or build hostless with ") +
          (vendor == MpiVendor::openmpi ? "libopenmpi-dev" : "libmpich-dev") + " installed.",
      "its MPI library is missing or another one). Install the Debian packages " + package_of(vendor) + "."};
}

template <class Function>
Function* entry(void* library, char const* symbol) {
  return reinterpret_cast<Function*>(dlsym(library, symbol));
}

void* loaded_plugin(MpiVendor vendor) {
  // Global, because the MPI libraries load components of their own that look for their symbols.
  LoadedPlugin const loaded = load_plugin(kind_of(vendor), RTLD_GLOBAL);
  if (loaded.library == nullptr) throw Error(ErrorCode::environment, loaded.problem);
  return loaded.library;
}

std::unique_ptr<Transport> open_plugin(MpiVendor vendor, int const* fortran_communicator) {
  return std::unique_ptr<Transport>(
      entry<mpi_plugin::Open>(loaded_plugin(vendor), mpi_plugin::open_name)(fortran_communicator));
}

std::optional<MpiVendor> vendor_in(std::string_view text) {
  if (text.find("Open MPI") != text.npos) return MpiVendor::openmpi;
  if (text.find("MPICH") != text.npos) return MpiVendor::mpich;
  return std::nullopt;
}

std::string library_version(void* library) {
  char text[512] = "";
  entry<mpi_plugin::LibraryVersion>(library, mpi_plugin::library_version_name)(text, sizeof text);
  return text;
}

// In the child: loads the plugin and writes '+' and the version, or '-' and the problem ('~' where another
// file may fit).
[[noreturn]] void report_from_child(MpiVendor vendor, fs::path const& path, int to) {
  LoadedPlugin const loaded = load_plugin_file(kind_of(vendor), path, RTLD_LOCAL);
  std::string const text = loaded.library != nullptr ? std::string("+") + library_version(loaded.library)
                                                     : (loaded.other_version ? "~" : "-") + loaded.problem;
  ssize_t const written = write(to, text.data(), text.size());
  leave_process(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

// All that comes through a pipe before the deadline; true when its other end was closed by then.
bool read_all(int from, std::string& text, Deadline deadline) {
  constexpr int look_ms = 100;
  Countdown countdown(deadline);
  char buffer[512];
  for (;;) {
    pollfd one{from, POLLIN, 0};
    if (poll(&one, 1, look_ms) > 0) {                         // bounded: look_ms
      ssize_t const got = read(from, buffer, sizeof buffer);  // bounded: poll has seen it
      if (got <= 0) return true;
      text.append(buffer, static_cast<std::size_t>(got));
    } else if (countdown.is_over()) {
      return false;
    }
  }
}

std::string ask_child(MpiVendor vendor, fs::path const& path) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "-no pipe for the probe (too many open files). Close some.";
  std::cout.flush();
  std::fflush(nullptr);
  pid_t const child = fork();
  if (child == 0) report_from_child(vendor, path, ends[1]);
  close(ends[1]);
  std::string text;
  WaitLimits const limits = WaitLimits::from_environment();
  bool const in_time = child > 0 && read_all(ends[0], text, Deadline::after(limits.later_s)) &&
                       wait_for_child(child, Deadline::after(limits.later_s)).has_value();
  close(ends[0]);
  if (child < 0) return "-no process for the probe (too many). End some.";
  if (!in_time) {
    end_child(child);
    return std::string("-") + path.c_str() +
           " was not loaded within the deadline (its MPI hangs). Reinstall it, or " +
           "raise HOSTLESS_DEADLINE_SCALE if it is only slow.";
  }
  if (text.empty())
    text = std::string("-") + path.c_str() + " crashes when loaded (its MPI is broken). Reinstall it.";
  return text;
}

/// A launcher, and what must lie beside it so that it is known for whose it is; "": its name says so.
struct Launcher {
  char const *name, *beside;
};

// The first folder of PATH decides, as for any program: an MPI of one's own in front of Debian's starts its
// own ranks.
std::string find_program(std::initializer_list<Launcher> const& launchers) {
  std::string const path = text_of("PATH");
  for (std::size_t at = 0; at <= path.size();) {
    std::size_t const end = std::min(path.find(':', at), path.size());
    fs::path const folder = path.substr(at, end - at);
    for (auto const& [name, beside] : launchers) {
      if (access((folder / name).c_str(), X_OK) == 0 &&
          (*beside == 0 || access((folder / beside).c_str(), F_OK) == 0))
        return (folder / name).string();
    }
    at = end + 1;
  }
  return {};
}

// `mpirun` is Open MPI's beside its ompi_info; elsewhere Debian's alternatives may lead to MPICH's.
std::string find_launcher(MpiVendor vendor) {
  if (vendor == MpiVendor::mpich) return find_program({{"mpiexec.mpich", ""}, {"mpiexec.hydra", ""}});
  std::string const known = find_program({{"mpirun.openmpi", ""}, {"mpirun", "ompi_info"}});
  return known.empty() ? find_program({{"mpirun", ""}}) : known;
}

}  // namespace

char const* name(MpiVendor vendor) { return vendor == MpiVendor::openmpi ? "openmpi" : "mpich"; }

bool started_by_mpi() {
  return has("OMPI_COMM_WORLD_SIZE") || has("PMI_RANK") || has("PMI_SIZE") || has("PMIX_RANK") ||
         has("PMI_FD");
}

std::optional<MpiVendor> mpi_vendor_of_this_process() {
  std::string_view const chosen = text_of("HOSTLESS_MPI");
  if (chosen == "openmpi") return MpiVendor::openmpi;
  if (chosen == "mpich") return MpiVendor::mpich;
  if (!chosen.empty()) {
    throw Error(ErrorCode::usage, "HOSTLESS_MPI is '" + std::string(chosen) +
                                      "' (it names the MPI to use). Set it to openmpi or mpich.");
  }
  if (auto const vendor = vendor_in(mpi_library_of_this_process())) return vendor;
  if (has("OMPI_COMM_WORLD_SIZE")) return MpiVendor::openmpi;
  if (has("PMI_RANK") || has("PMI_SIZE") || has("PMI_FD")) return MpiVendor::mpich;
  if (has("PMIX_RANK")) return MpiVendor::openmpi;
  return std::nullopt;
}

MpiVendor require_mpi_vendor() {
  if (auto const known = mpi_vendor_of_this_process()) return *known;
  throw Error(ErrorCode::environment,
              "the MPI of this mpirun is not known. Set HOSTLESS_MPI to openmpi or mpich.");
}

MpiVendor usable_mpi_vendor() {
  if (auto const known = mpi_vendor_of_this_process()) return *known;
  std::string problems;
  for (MpiPlugin const& plugin : mpi_plugins()) {
    if (plugin.problem.empty()) return plugin.vendor;
    problems += " " + plugin.problem;
  }
  throw Error(ErrorCode::environment, "no usable MPI." + problems);
}

std::string mpi_library_of_this_process() {
  void* const symbol = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
  if (symbol == nullptr) return {};
  // Room for MPI_MAX_LIBRARY_VERSION_STRING of either vendor (256 and 8192).
  std::string text(16384, '\0');
  int length = 0;
  reinterpret_cast<int (*)(char*, int*)>(symbol)(text.data(), &length);
  return text.substr(0, std::min(text.find('\n'), text.find('\0')));  // MPICH tells how it was configured
}

std::unique_ptr<Transport> open_mpi_transport(MpiVendor vendor) { return open_plugin(vendor, nullptr); }

std::unique_ptr<Transport> open_mpi_transport(MpiVendor vendor, int fortran_communicator) {
  return open_plugin(vendor, &fortran_communicator);
}

std::unique_ptr<LibraryNeighbors> library_neighbors(MpiVendor vendor, std::span<int const> sources,
                                                    std::span<int const> destinations) {
  auto* const make = entry<mpi_plugin::Neighbors>(loaded_plugin(vendor), mpi_plugin::neighbors_name);
  return std::unique_ptr<LibraryNeighbors>(make(sources.data(), static_cast<int>(sources.size()),
                                                destinations.data(), static_cast<int>(destinations.size())));
}

std::vector<MpiPlugin> mpi_plugins() {
  std::vector<MpiPlugin> plugins;
  for (MpiVendor const vendor : {MpiVendor::openmpi, MpiVendor::mpich}) {
    PluginKind const kind = kind_of(vendor);
    PluginFiles const files = find_plugin_files(kind.file);
    MpiPlugin plugin{vendor, "", "", files.paths.empty() ? not_found(kind, files) : ""};
    for (fs::path const& path : files.paths) {
      std::string const answer = ask_child(vendor, path);
      if (answer[0] == '~' && !plugin.path.empty()) continue;
      plugin = {vendor, path.string(), "", ""};
      (answer[0] == '+' ? plugin.library : plugin.problem) = answer.substr(1);
      if (answer[0] != '~') break;
    }
    plugins.push_back(std::move(plugin));
  }
  return plugins;
}

std::vector<std::string> mpirun_command(MpiVendor vendor, int ranks,
                                        std::vector<std::string> const& command) {
  if (ranks < 1 || command.empty()) {
    throw Error(ErrorCode::usage, "mpirun of " + std::to_string(ranks) + " ranks and " +
                                      std::to_string(command.size()) +
                                      " words (it needs at least one of each). Give a command.");
  }
  bool const open_mpi = vendor == MpiVendor::openmpi;
  std::string const program = find_launcher(vendor);
  if (program.empty()) {
    throw Error(ErrorCode::environment,
                std::string(open_mpi ? "mpirun of Open MPI" : "mpiexec of MPICH") +
                    " is not in PATH (it starts the ranks). Install the Debian package " +
                    (open_mpi ? "openmpi-bin." : "mpich."));
  }
  std::vector<std::string> words{program};
  if (open_mpi) {
    words.emplace_back("--oversubscribe");
    if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  }
  words.emplace_back("-n");
  words.push_back(std::to_string(ranks));
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

void leave_process(int code) {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
#ifdef HOSTLESS_COVERAGE
  __gcov_dump();  // _exit() would drop what this rank has counted
#endif
  _exit(code);
}

}  // namespace hostless
