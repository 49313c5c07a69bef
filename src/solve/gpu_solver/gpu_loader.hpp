#pragma once

#include <string>
#include <vector>

#include "solve/gpu_solver/gpu_library.hpp"

namespace hostless::gpu {

/// A GPU library as found on this machine.
struct Found {
  std::string vendor;  ///< cuda, hip
  std::string path;    ///< empty: not found
  Library* library = nullptr;
  std::string problem;  ///< empty when it is loaded and sees a GPU
};

/// Both vendors' libraries, loaded once and kept. Never throws: a machine without a driver is an answer.
std::vector<Found> const& libraries();

/// The first library that sees a GPU.
/// Errors  environment  none does, with what each vendor's library said
Library& library();

}  // namespace hostless::gpu
