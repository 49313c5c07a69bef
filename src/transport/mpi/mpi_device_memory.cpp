#include "transport/mpi/mpi_device_memory.hpp"

#include <dlfcn.h>

#include "base/variable.hpp"
#include "hostless/base/error.hpp"

namespace hostless {
namespace {

template <class Function>
Function* loaded(char const* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));  // plugins of MPI are loaded for all
}

}  // namespace

MpiDeviceMemory ask_mpi_for_device_memory(std::string const& vendor) {
  bool const is_cuda = vendor == "cuda";
  std::string const query = is_cuda ? "MPIX_Query_cuda_support" : "MPIX_Query_rocm_support";
  auto* const of_open_mpi = loaded<int()>(query.c_str());
  if (of_open_mpi != nullptr && of_open_mpi() == 1) return {true, query + " says so"};
  auto* const of_mpich = loaded<int(int, int*)>("MPIX_GPU_query_support");
  int const kind = is_cuda ? 0 : 2;  // as MPICH numbers them
  int taken = 0;
  if (of_mpich != nullptr && of_mpich(kind, &taken) == 0 && taken != 0)
    return {true, "MPIX_GPU_query_support says so"};
  for (char const* variable :
       {"MPICH_GPU_SUPPORT_ENABLED", "MV2_USE_CUDA", "MV2_USE_ROCM", "HOSTLESS_MPI_DEVICE_MEMORY"})
    if (is_one(variable)) return {true, std::string(variable) + " is 1"};
  if (of_open_mpi != nullptr) return {false, query + " says no"};
  if (of_mpich != nullptr) return {false, "MPIX_GPU_query_support says no"};
  return {false, "this MPI has no " + query + " and no MPIX_GPU_query_support"};
}

std::string require_mpi_device_memory(std::string const& vendor) {
  MpiDeviceMemory const answer = ask_mpi_for_device_memory(vendor);
  if (answer.taken) return answer.what;
  throw Error(
      ErrorCode::environment,
      "GPU transport mpi with an MPI that takes no memory of GPUs (" + answer.what +
          "). Use --gpu-transport host, which stages it; or set HOSTLESS_MPI_DEVICE_MEMORY=1 where its "
          "UCX does.");
}

}  // namespace hostless
