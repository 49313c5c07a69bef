#include "solve/gpu_solver/gpu_loader.hpp"

#include "hostless/base/error.hpp"
#include "transport/stream/gpu_files.hpp"

namespace hostless::gpu {
namespace {

Found found_in(GpuFile const& file) {
  Found found{file.vendor, file.path, nullptr, file.problem};
  if (file.handle == nullptr) return found;
  auto* const open = reinterpret_cast<Open*>(function_of(file, open_name));
  if (open == nullptr) {
    found.problem = file.path +
                    " has no solver (it is a library for tests of exchanges). Name another folder in "
                    "HOSTLESS_PLUGIN_DIR.";
    return found;
  }
  found.library = open();
  if (found.library->devices() == 0)
    found.problem = found.library->describe() + ": no GPU is visible (no driver, or all are hidden).";
  return found;
}

}  // namespace

std::vector<Found> const& libraries() {
  static std::vector<Found> const all = [] {
    std::vector<Found> each;
    for (GpuFile const& file : gpu_files()) each.push_back(found_in(file));
    return each;
  }();
  return all;
}

Library& library() {
  std::string problems;
  for (Found const& found : libraries()) {
    if (found.problem.empty()) return *found.library;
    problems += "\n  " + found.vendor + ": " + found.problem;
  }
  throw Error(ErrorCode::environment,
              "no GPU can be used (a GPU run was asked for). Leave out --gpus." + problems);
}

}  // namespace hostless::gpu
