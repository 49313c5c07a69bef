#include "solve/gpu_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hostless/base/error.hpp"
#include "operate/device_rows.hpp"

namespace hostless {

GpuSlot gpu_slot(int rank, int ranks, int gpus) {
  int const used = std::min(gpus, ranks), device = rank % used;
  return {device, (ranks - device + used - 1) / used};
}

namespace {

// What is known only where the ranks are.
void check_by_stream(Matrix const& matrix, GpuTransport transport) {
  Capabilities const ranks = matrix.transport().capabilities();
  int const count = matrix.transport().group().size();
  if (transport == GpuTransport::nvshmem && ranks.threads_as_ranks && count > 1)
    throw Error(ErrorCode::usage,
                fmt::format("GPU transport nvshmem with {} ranks that are threads of one process (NVSHMEM "
                            "knows a process a GPU). Use --transport processes, or start them with mpirun.",
                            count));
  if (transport == GpuTransport::mpi && ranks.transport != "mpi")
    throw Error(
        ErrorCode::usage,
        fmt::format("GPU transport mpi with ranks of transport {} (it is their MPI that carries). Use "
                    "--transport mpi, or --gpu-transport host.",
                    ranks.transport));
}

}  // namespace

void check_gpu_ranks(Matrix const& matrix, RunOptions const& run) {
  check_gpus(run, matrix.ranks_here());
  check_by_stream(matrix, run.gpu_transport);
  DeviceRows const* const rows = matrix.device_rows();
  int const ranks = matrix.transport().group().size();
  bool const by_memory =
      run.gpu_transport == GpuTransport::automatic || run.gpu_transport == GpuTransport::peer;
  if (run.gpus > 0 && by_memory && ranks > matrix.ranks_here())
    throw Error(
        ErrorCode::usage,
        fmt::format("GPU transport peer with {} of {} ranks on this machine (GPUs store into the memory of "
                    "their machine alone). Use --gpu-transport nccl or host.",
                    matrix.ranks_here(), ranks));
  if (ranks > 1 && rows != nullptr && rows->format == DeviceFormat::vendor)
    throw Error(ErrorCode::usage,
                fmt::format("format vendor on {} ranks (the vendor's library multiplies whole matrices). Use "
                            "another format, or one rank.",
                            ranks));
}

}  // namespace hostless
