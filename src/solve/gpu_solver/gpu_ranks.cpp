#include "solve/gpu_solver/gpu_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.hpp"
#include "hostless/base/error.hpp"
#include "operate/device_rows.hpp"

namespace hostless {

GpuSlot gpu_slot(int rank, int ranks, int gpus, bool in_blocks) {
  int const used = std::min(gpus, ranks);
  if (in_blocks) {
    auto const first = [&](int device) { return (ranks * device + used - 1) / used; };
    int const device = rank * used / ranks;
    return {device, first(device + 1) - first(device)};
  }
  int const device = rank % used;
  return {device, (ranks - device + used - 1) / used};
}

void check_gpu_ranks(Matrix const& matrix, RunOptions const& run) {
  check_gpus(run, matrix.ranks_here());
  DeviceRows const* const rows = matrix.device_rows();
  int const ranks = matrix.transport().group().size();
  if (run.gpus > 0)
    check_gpu_transport(run.gpu_transport, matrix.transport().capabilities(), ranks, matrix.ranks_here());
  if (ranks > 1 && rows != nullptr && rows->format == DeviceFormat::vendor)
    throw Error(ErrorCode::usage,
                fmt::format("format vendor on {} (the vendor's library multiplies whole matrices). Use "
                            "another format, or one rank.",
                            counted(ranks, "rank")));
}

}  // namespace hostless
