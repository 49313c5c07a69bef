#pragma once
// Chooses the run of a method that is bound to a GPU by measuring each that fits, once a matrix. Runs end
// with the same bits (in the free order of sums: with what the order may do), so nothing but time depends on
// it.

#include <functional>
#include <string>

#include "solve/gpu_solver/gpu_library.hpp"
#include "solve/gpu_solver/tuning_cache.hpp"

namespace hostless::gpu {

/// Names what the times depend on: the device, the kernels, the method and the layout.
std::string tuning_key(Problem const& problem, DeviceFacts const& facts, std::string const& library);

struct TuningRequest {
  std::string key;
  State start;  ///< as a solve begins; tolerance, limit and history are not used
  std::int64_t owned = 0;
  int fields = 0;               ///< of the method's data, the gathered one among them
  std::function<bool()> stop;   ///< asked while the GPU works; empty: nobody
  double most_device_s = 0.05;  ///< of a candidate; one that takes longer is not repeated
};

/// Measures what fits and binds the fastest run, unless the cache knows it. `solve` has rows and
/// preconditioner and the run that the model chose; its vectors are overwritten. Where nothing can be
/// measured (the method ends by itself before), the model's choice stays, and says so. Returns why this run
std::string choose_by_measuring(BoundSolve& solve, TuningRequest const& request, TuningCache const& cache);

}  // namespace hostless::gpu
