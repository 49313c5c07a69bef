#pragma once
// What carries between GPUs and is a library of its own, for `hostless doctor`: found, and proven by solving.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hostless/transport/mpi.hpp"
#include "solve/gpu_solver/gpu_loader.hpp"

namespace hostless {

struct TransportProof {
  std::string vendor, name;  ///< cuda or hip; nccl, nvshmem or mpi
  std::string library;       ///< which one; empty: absent
  std::string detail;        ///< how it would carry, as far as can be known
  std::string problem;       ///< why it is absent, or what went wrong when it was tried; empty: nothing
  bool tried = false, proven = false;
  double iteration_us = 0;  ///< where it is proven: of a small matrix on two GPUs
};

/// Of every GPU library that can be loaded. prove: each that is there carries a solve between two GPUs in
/// processes of their own, which may crash or hang for two minutes, and whose bits must be those of the
/// processor.
std::vector<TransportProof> look_at_gpu_transports(std::vector<gpu::Found> const& libraries,
                                                   std::vector<MpiPlugin> const& plugins, bool prove);
void print_gpu_transports(std::vector<TransportProof> const& all);
nlohmann::ordered_json json_of(std::vector<TransportProof> const& all);

}  // namespace hostless
