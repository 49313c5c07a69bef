#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hostless/transport/transport.hpp"
#include "solve/gpu_library.hpp"

namespace hostless::gpu {

/// What the MPI of this process says of device memory, before anything is moved.
struct MpiDeviceMemory {
  bool taken = false;
  std::string what;  ///< who said so, or that nobody does
};
/// vendor: cuda or hip. Asks the loaded library, then looks for what others are told by their environment:
/// one that takes no device memory would not refuse it, but end the process.
MpiDeviceMemory ask_mpi_for_device_memory(std::string const& vendor);

/// The host's side of `--gpu-transport mpi`: messages of the matrix' transport between buffers of GPUs, sums
/// in the host's memory.
class DeviceMessages {
 public:
  /// What is passed outlives it.
  DeviceMessages(Transport& transport, std::vector<MessageLevel> const& levels, WaitLimits limits);
  /// Errors  environment  the library does not say that it takes device memory of this vendor
  void ask(std::string const& vendor);
  /// of_level[k]: [from] and [to] of level k, packed. Collective over the transport's group; again after a
  /// rank was lost.
  /// Errors  as Transport::bind
  void bind(std::vector<std::pair<double const*, double*>> const& of_level);
  DeviceCalls const& calls() const { return calls_; }

 private:
  struct Level {
    std::vector<int> out, in;  ///< indices of the binding
  };
  template <class Ready>
  bool wait(Ready const& ready);
  bool exchange(int level);
  bool gather(double const* mine, int count, double* all);

  Transport& transport_;
  std::vector<MessageLevel> const& messages_;
  WaitLimits limits_;
  std::vector<Level> levels_;
  std::unique_ptr<Endpoint> endpoint_;
  std::uint32_t epoch_ = 0;
  bool is_first_ = true, is_lost_ = false;
  DeviceCalls calls_;
};

}  // namespace hostless::gpu
