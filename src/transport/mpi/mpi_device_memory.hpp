#pragma once

#include <string>

namespace hostless {

/// What the MPI of this process says of device memory, before anything is moved.
struct MpiDeviceMemory {
  bool taken = false;
  std::string what;  ///< who said so, or that nobody does
};
/// vendor: cuda or hip. Asks the loaded library, then looks for what others are told by their environment:
/// one that takes no device memory would not refuse it, but end the process.
MpiDeviceMemory ask_mpi_for_device_memory(std::string const& vendor);
/// Who says that it is taken.
/// Errors  environment  nobody does
std::string require_mpi_device_memory(std::string const& vendor);

}  // namespace hostless
