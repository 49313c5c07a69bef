#pragma once
// Kernels of one GPU that store into the memory of another.

#include <string>
#include <vector>

#include "device/memory.hpp"
#include "transport/memory/path_facts.hpp"

namespace hostless::gpu {

inline void use_device(int device) { check(HOSTLESS_GPU(SetDevice)(device), "choosing a GPU"); }

template <class... Parameters>
void launch_kernel(void const* kernel, int blocks, int threads, HOSTLESS_GPU(Stream_t) stream,
                   Parameters... parameters) {
  void* all[] = {&parameters...};
  check(HOSTLESS_GPU(LaunchKernel)(kernel, dim3(static_cast<unsigned>(blocks)),
                                   dim3(static_cast<unsigned>(threads)), all, 0, stream),
        "launching a kernel");
}

/// So many seconds of a GPU's clock at its highest rate.
std::uint64_t cycles_of(int device, double seconds);

/// Kernels of `from`, which is in use then, may store to `to` afterwards. Returns why not; empty: they may.
std::string open_path(int from, int to);

std::vector<PathFacts> prove_paths(int devices);
PingPongFacts ping_pong(PingPongRequest const& request);

}  // namespace hostless::gpu
