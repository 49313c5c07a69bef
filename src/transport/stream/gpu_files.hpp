#pragma once
// The GPU libraries of this machine, as files. What is asked of them is declared where it is used.

#include <string>
#include <vector>

namespace hostless::gpu {

/// Of all that crosses the loader: the headers that say so.
constexpr int interface_version = 50;
using InterfaceVersion = int();
constexpr char const* interface_version_name = "hostless_gpu_interface_version";

struct GpuFile {
  std::string vendor;      ///< cuda, hip
  std::string path;        ///< empty: not found
  void* handle = nullptr;  ///< of the loader; null: it cannot be used
  std::string problem;     ///< why; empty: it is loaded, and of this version
};
/// Both vendors', loaded once and kept. Never throws: a machine without a driver is an answer.
std::vector<GpuFile> const& gpu_files();

/// A function of it; null: there is none.
void* function_of(GpuFile const& file, char const* name);

}  // namespace hostless::gpu
