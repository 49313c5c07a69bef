#include "stencil/gpu/stencil_library.hpp"

#include "hostless/base/error.hpp"
#include "transport/stream/gpu_files.hpp"

namespace hostless::gpu {

StencilLibrary& stencil_library() {
  std::string problems;
  for (GpuFile const& file : gpu_files()) {
    std::string problem = file.problem;
    if (file.handle != nullptr) {
      auto* const open = reinterpret_cast<OpenStencils*>(function_of(file, open_stencils_name));
      if (open != nullptr && open()->devices() > 0) return *open();
      problem = open == nullptr ? file.path + " has no stencils." : "no GPU is visible.";
    }
    problems += "\n  " + file.vendor + ": " + problem;
  }
  throw Error(ErrorCode::environment,
              "no GPU can be used (a stencil was to be stepped on one). Leave out --gpus." + problems);
}

}  // namespace hostless::gpu
